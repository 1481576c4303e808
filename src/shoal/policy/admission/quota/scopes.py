"""Matches objects against the scopes of a quota."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shoal.policy.admission.pod_resources import Obj, container_amounts, parsed


class Scope(NamedTuple):
    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def takes(self, value: str) -> bool:
        """Whether a text that may be missing is one this scope asks for."""
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        return bool(value) == (self.operator == "Exists")


def scopes_of(quota: Obj) -> list[Scope]:
    spec = quota.get("spec") or {}
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return [
        *(Scope(name) for name in spec.get("scopes") or ()),
        *(Scope(one["scopeName"], one.get("operator", "Exists"), tuple(one.get("values") or ())) for one in selected),
    ]


def pod_in_scope(scope: Scope, spec: Obj) -> bool:
    match scope.name:
        case "Terminating":
            return _has_deadline(spec)
        case "NotTerminating":
            return not _has_deadline(spec)
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            return scope.takes(spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return any(term.get("namespaces") or "namespaceSelector" in term for term in _affinity_terms(spec))
    return False


def volume_claim_in_scope(scope: Scope, claim: Obj) -> bool:
    """The class a claim has, wants and is being changed to all count."""
    if scope.name != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    names = {
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return any(scope.takes(name) for name in names if name) if any(names) else scope.takes("")


def _has_deadline(spec: Obj) -> bool:
    return spec.get("activeDeadlineSeconds") is not None


def _is_best_effort(spec: Obj) -> bool:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    listed = [container_amounts(one, "requests") for one in containers]
    listed += [container_amounts(one, "limits") for one in containers]
    own = spec.get("resources") or {}
    listed += [parsed(own.get("requests")), parsed(own.get("limits"))]
    return not any(amounts.get(name) for amounts in listed for name in ("cpu", "memory"))


def _affinity_terms(spec: Obj) -> Iterator[Obj]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
