"""A pod of a RuntimeClass carries its overhead and runs where that runtime is."""

from __future__ import annotations

from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, forbid
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource
from shoal.units.quantity import Quantity

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNFOUNDED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(AdmissionPlugin):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == "CREATE" and resource.home == POD and not subresource

    def mutate(self, admission: AdmissionAttributes) -> None:
        spec: Obj = (admission.obj or {}).get("spec") or {}
        if "runtimeClassName" not in spec:
            return
        found = self._class_of(admission, spec)
        if found is None:
            return
        overhead = _overhead(found)
        if overhead:
            if spec.get("overhead") and not _same(spec["overhead"], overhead):
                raise forbid(admission, _MISMATCH)
            spec["overhead"] = dict(overhead)
        self._place(admission, spec, found.get("scheduling") or {})

    def validate(self, admission: AdmissionAttributes) -> None:
        spec: Obj = (admission.obj or {}).get("spec") or {}
        if "overhead" not in spec and "runtimeClassName" not in spec:
            return
        found = self._class_of(admission, spec)
        overhead = _overhead(found) if found else {}
        given = spec.get("overhead") or {}
        if overhead and not _same(given, overhead):
            raise forbid(admission, _MISMATCH)
        if given and not overhead:
            raise forbid(admission, _UNFOUNDED)

    def _class_of(self, admission: AdmissionAttributes, spec: Obj) -> Obj | None:
        name = spec.get("runtimeClassName")
        if not name:
            return None
        found = self._reader.get("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            raise forbid(admission, f'pod rejected: RuntimeClass "{name}" not found')
        return found

    def _place(self, admission: AdmissionAttributes, spec: Obj, scheduling: Obj) -> None:
        wanted = scheduling.get("nodeSelector") or {}
        given = spec.get("nodeSelector") or {}
        for key, value in sorted(wanted.items()):
            if given.get(key, value) != value:
                where = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
                raise forbid(admission, f"conflict: {where}; pod.spec.nodeSelector[{key}] = {given[key]}")
        if wanted:
            spec["nodeSelector"] = {**given, **wanted}
        held = spec.get("tolerations") or []
        added = [dict(one) for one in scheduling.get("tolerations") or () if one not in held]
        if added:
            spec["tolerations"] = [*held, *added]


def _overhead(runtime_class: Obj) -> dict[str, str]:
    found: dict[str, str] = (runtime_class.get("overhead") or {}).get("podFixed") or {}
    return found


def _same(left: dict[str, str], right: dict[str, str]) -> bool:
    return left.keys() == right.keys() and all(Quantity.parse(left[key]) == Quantity.parse(right[key]) for key in left)
