"""Sets a pod's priority from its PriorityClass or the default class."""

from __future__ import annotations

from shoal.embedded.apiserver.admission.kept import Kept
from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, forbid, spec_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource
from shoal.policy.admission.priority_classes import class_not_found, default_class, set_priority

_GROUP = "scheduling.k8s.io"
_CLASSES = "priorityclasses"


class Priority(AdmissionPlugin):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._default: Kept[tuple[Obj | None]] = Kept(reader, _GROUP, _CLASSES, lambda found: (default_class(found),))

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return resource.home in (POD, (_GROUP, _CLASSES)) and not subresource and operation in ("CREATE", "UPDATE")

    def mutate(self, admission: AdmissionAttributes) -> None:
        if admission.obj is None or admission.call.resource.home != POD:
            return
        if admission.operation == "UPDATE":
            _keep(spec_of(admission.obj), (admission.old or {}).get("spec") or {})
        else:
            self._resolve(admission, spec_of(admission.obj))

    def validate(self, admission: AdmissionAttributes) -> None:
        if admission.obj is None or admission.call.resource.home == POD or not admission.obj.get("globalDefault"):
            return
        (default,) = self._default.get()
        if default is None:
            return
        name = default["metadata"]["name"]
        if admission.operation == "CREATE" or name != admission.obj["metadata"].get("name"):
            raise forbid(admission, f"PriorityClass {name} is already marked as default. Only one default can exist")

    def _resolve(self, admission: AdmissionAttributes, spec: Obj) -> None:
        fault = set_priority(spec, self._class_of(admission, spec))
        if fault:
            raise forbid(admission, fault)

    def _class_of(self, admission: AdmissionAttributes, spec: Obj) -> Obj | None:
        name = spec.get("priorityClassName")
        if name:
            found = self._reader.get(_GROUP, _CLASSES, "", name)
            if found is None:
                raise forbid(admission, class_not_found(name))
            return found
        (default,) = self._default.get()
        if default is not None:
            spec["priorityClassName"] = default["metadata"]["name"]
        return default


def _keep(spec: Obj, before: Obj) -> None:
    """Writers of a whole pod often leave out what admission had set; that is not a wish to unset it."""
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None and before.get(key) is not None:
            spec[key] = before[key]
