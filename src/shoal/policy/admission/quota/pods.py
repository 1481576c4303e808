"""Evaluates the quota usage of pods: the object, its compute until it terminates, extended resources by `requests.`
only.

A quota on cpu or memory makes every container say what it wants of it, as otherwise nothing would be known to count.
Extended resources cannot be overcommitted, so `limits.nvidia.com/gpu` is a name that nothing ever counts against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.policy.admission.pod_resources import Amounts, Field, Obj, container_amounts, pod_amounts
from shoal.policy.admission.quota.evaluator import ONE, Evaluator
from shoal.policy.admission.quota.scopes import Scope, pod_in_scope
from shoal.policy.admission.quota.shared_gpus import devices_by_annotation, with_parts_as_gpus
from shoal.units.quantity import Quantity

_NATIVE = ("cpu", "memory", "ephemeral-storage")
_NAMES = frozenset(
    {
        "count/pods",
        "pods",
        *_NATIVE,
        *(f"requests.{name}" for name in _NATIVE),
        *(f"limits.{name}" for name in _NATIVE),
    }
)
_MUST_BE_SAID = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_GPU_REQUESTS = "requests.nvidia.com/gpu"
_NONE = Quantity.of(0)
_POD_LEVEL = ("cpu", "memory")
_FIELDS: tuple[Field, ...] = ("requests", "limits")


class PodEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__(("", "pods"))

    def handles(self, operation: str, subresource: str) -> bool:
        return (operation, subresource) in (("CREATE", ""), ("UPDATE", "resize"))

    def uses_other_amounts(self, old: Obj, new: Obj) -> bool:
        return _is_over(old) != _is_over(new) or devices_by_annotation(old) != devices_by_annotation(new)

    def asks_for_more(self, old: Obj, new: Obj) -> bool:
        return devices_by_annotation(new) > devices_by_annotation(old)

    def matching(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name in _NAMES or _is_open_name(name)}

    def in_scope(self, scope: Scope, obj: Obj) -> bool:
        return pod_in_scope(scope, obj["spec"])

    def missing(self, required: set[str], obj: Obj) -> str:
        silent = self.silent_containers(required, obj)
        listed = "; ".join(f"{name} for: {','.join(sorted(set(silent[name].values())))}" for name in sorted(silent))
        return f"must specify {listed}" if listed else ""

    def silent_containers(self, required: set[str], obj: Obj) -> dict[str, dict[str, str]]:
        """By required resource, the paths and the names of the containers that do not specify it."""
        spec = obj["spec"]
        wanted = required & _MUST_BE_SAID
        silent: dict[str, dict[str, str]] = {}
        if not wanted or _speaks_for_its_containers(spec):
            return silent
        for kind in ("containers", "initContainers"):
            for at, container in enumerate(spec.get(kind) or ()):
                said = _names(*(container_amounts(container, field) for field in _FIELDS))
                for name in sorted(wanted.difference(said)):
                    silent.setdefault(name, {})[f"spec.{kind}[{at}]"] = container["name"]
        return silent

    def usage(self, obj: Obj) -> Amounts:
        found = {"count/pods": ONE}
        if _is_over(obj):
            return found
        spec = obj["spec"]
        requests = pod_amounts(with_parts_as_gpus(spec), "requests", with_overhead=True)
        limits = pod_amounts(spec, "limits", with_overhead=True)
        found["pods"] = ONE
        for name, amount in requests.items():
            for counted in _request_names(name):
                found[counted] = amount
        devices = devices_by_annotation(obj)
        if devices:
            found[_GPU_REQUESTS] = found.get(_GPU_REQUESTS, _NONE) + Quantity.of(devices)
        for name in _NATIVE:
            if name in limits:
                found[f"limits.{name}"] = limits[name]
        return found


def _speaks_for_its_containers(spec: Obj) -> bool:
    own = spec.get("resources") or {}
    names = {*(own.get("requests") or ()), *(own.get("limits") or ())}
    return any(name in _POD_LEVEL or name.startswith("hugepages-") for name in names)


def _is_over(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")


def _names(requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name in requests:
        yield from _request_names(name)
    for name in limits:
        if name in _NATIVE:
            yield f"limits.{name}"


def _request_names(name: str) -> tuple[str, ...]:
    if name in _NATIVE or name.startswith("hugepages-"):
        return name, f"requests.{name}"
    return (f"requests.{name}",) if _is_extended(name) else ()


def _is_open_name(name: str) -> bool:
    if name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and _is_extended(name.removeprefix("requests."))


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name
