"""LimitRanges: what a container asks for when it does not say, and between which bounds it may.

A range of type Container holds for every container, init containers included; `Pod` for their sum; the type of claims
for the storage a claim asks for. Ranges are taken in the order of their names, so that refusals do not change.
"""

from __future__ import annotations

from shoal.embedded.apiserver.admission.kept import Kept, by_namespace
from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, forbid, spec_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource
from shoal.policy.admission.faults import aggregate
from shoal.policy.admission.limit_bounds import LimitRangeBounds, storage_faults
from shoal.policy.admission.limit_ranges import faults_of, set_defaults

_CLAIMS = ("", "persistentvolumeclaims")


class LimitRanger(AdmissionPlugin):
    def __init__(self, reader: Reader) -> None:
        self._ranges = Kept(reader, "", "limitranges", by_namespace)

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        if resource.home == POD:
            return (operation, subresource) in (("CREATE", ""), ("UPDATE", "resize"))
        return resource.home == _CLAIMS and not subresource and operation in ("CREATE", "UPDATE")

    def mutate(self, admission: AdmissionAttributes) -> None:
        if admission.obj is None or admission.operation != "CREATE" or admission.call.resource.home != POD:
            return
        for one in self._of(admission):
            spec_of(admission.obj)
            set_defaults(admission.obj, one)

    def validate(self, admission: AdmissionAttributes) -> None:
        obj = admission.obj
        if obj is None or ((admission.old or {}).get("metadata") or {}).get("deletionTimestamp"):
            return
        is_pod = admission.call.resource.home == POD
        for one in self._of(admission):
            limits = (one.get("spec") or {}).get("limits") or ()
            faults = (
                faults_of(obj, one)
                if is_pod
                else [fault for limit in limits for fault in storage_faults(LimitRangeBounds(limit), obj["spec"])]
            )
            if faults:
                raise forbid(admission, aggregate(faults))

    def _of(self, admission: AdmissionAttributes) -> list[Obj]:
        return self._ranges.get().get(admission.namespace, [])
