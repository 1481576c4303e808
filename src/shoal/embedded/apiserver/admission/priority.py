"""Sets a pod's priority from its PriorityClass or the default class."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.embedded.apiserver.admission.kept import Kept
from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, forbid, spec_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource

_GROUP = "scheduling.k8s.io"
_CLASSES = "priorityclasses"
_PREEMPTS = "PreemptLowerPriority"
_COMPUTED = (
    "must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name"
)


class Priority(AdmissionPlugin):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._default: Kept[tuple[Obj | None]] = Kept(reader, _GROUP, _CLASSES, _default_class)

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
        found = self._class_of(admission, spec)
        value = int(found.get("value", 0)) if found else 0
        policy = found.get("preemptionPolicy") if found else _PREEMPTS
        given = spec.get("priority")
        if given is not None and given != value:
            raise forbid(admission, f"the integer value of priority ({given}) {_COMPUTED.format(value)}")
        spec["priority"] = value
        if policy is None:
            return
        asked = spec.get("preemptionPolicy")
        if asked is not None and asked != policy:
            raise forbid(admission, f"the string value of PreemptionPolicy ({asked}) {_COMPUTED.format(policy)}")
        spec["preemptionPolicy"] = policy

    def _class_of(self, admission: AdmissionAttributes, spec: Obj) -> Obj | None:
        name = spec.get("priorityClassName")
        if name:
            found = self._reader.get(_GROUP, _CLASSES, "", name)
            if found is None:
                raise forbid(admission, f"no PriorityClass with name {name} was found")
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


def _default_class(classes: Iterable[Obj]) -> tuple[Obj | None]:
    """Of several defaults, created at the same time, the lowest counts."""
    defaults = [one for one in classes if one.get("globalDefault")]
    return (min(defaults, key=lambda one: (one.get("value", 0), one["metadata"]["name"]), default=None),)
