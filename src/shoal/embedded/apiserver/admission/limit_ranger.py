"""LimitRanges: what a container asks for when it does not say, and between which bounds it may.

A range of type Container holds for every container, init containers included; `Pod` for their sum; the type of claims
for the storage a claim asks for. Ranges are taken in the order of their names, so that refusals do not change.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.admission.kept import Kept, by_namespace
from shoal.embedded.apiserver.admission.limit_bounds import LimitRangeBounds, pod_faults, storage_faults
from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, aggregate, forbid, spec_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource

_CLAIMS = ("", "persistentvolumeclaims")
ANNOTATION = "kubernetes.io/limit-ranger"
_KINDS = (("containers", "container"), ("initContainers", "init container"))


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
            _fill(admission.obj, one)

    def validate(self, admission: AdmissionAttributes) -> None:
        obj = admission.obj
        if obj is None or ((admission.old or {}).get("metadata") or {}).get("deletionTimestamp"):
            return
        is_pod = admission.call.resource.home == POD
        for one in self._of(admission):
            faults: list[str] = []
            for limit in (one.get("spec") or {}).get("limits") or ():
                bounds = LimitRangeBounds(limit)
                faults += pod_faults(bounds, obj["spec"]) if is_pod else storage_faults(bounds, obj["spec"])
            if faults:
                raise forbid(admission, aggregate(faults))

    def _of(self, admission: AdmissionAttributes) -> list[Obj]:
        return self._ranges.get().get(admission.namespace, [])


def _fill(pod: Obj, limit_range: Obj) -> None:
    limits: Obj = {}
    requests: Obj = {}
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            requests |= limit.get("defaultRequest") or {}
            limits |= limit.get("default") or {}
    if not limits and not requests:
        return
    reported = [
        text for container, word in _each(spec_of(pod)) for text in _fill_one(container, word, requests, limits)
    ]
    if reported:
        metadata = pod["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        annotations[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(reported)
        metadata["annotations"] = annotations


def _each(spec: Obj) -> Iterator[tuple[Obj, str]]:
    for field, word in _KINDS:
        for container in spec.get(field) or ():
            yield container, word


def _fill_one(container: Obj, word: str, requests: Obj, limits: Obj) -> Iterator[str]:
    resources = container.get("resources") or {}
    for field, defaults, noun in (("requests", requests, "request"), ("limits", limits, "limit")):
        given = resources.get(field) or {}
        missing = sorted(defaults.keys() - given.keys())
        if missing:
            resources[field] = {**given, **{name: defaults[name] for name in missing}}
            yield f"{', '.join(missing)} {noun} for {word} {container.get('name', '')}"
    if resources:
        container["resources"] = resources
