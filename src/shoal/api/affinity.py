"""Pod affinity, pod anti-affinity and topology spread constraints as typed values.

Types and the API server's checks only. What they mean for a placement depends on all other pods, so the
engine evaluates them, per topology domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from shoal.api.names import label_key_fault
from shoal.api.node_affinity import NodeAffinity
from shoal.api.selectors import LabelSelector
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class PodAffinityTerm(ApiStruct, frozen=True):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()

    def check(self, where: Where) -> None:
        _check_topology_key(self.topology_key, where)
        _check_selector(self.label_selector, where.below("labelSelector"))
        _check_selector(self.namespace_selector, where.below("namespaceSelector"))
        keys = (*self.match_label_keys, *self.mismatch_label_keys)
        _check_label_keys(keys, self.label_selector, where.below("matchLabelKeys"))


class WeightedPodAffinityTerm(ApiStruct, frozen=True):
    weight: Annotated[int, Meta(ge=1, le=100)]
    pod_affinity_term: PodAffinityTerm


class PodAffinity(ApiStruct, frozen=True):
    """Shared by `podAffinity` and `podAntiAffinity`, which differ only in sign."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()

    @property
    def required(self) -> tuple[PodAffinityTerm, ...]:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[WeightedPodAffinityTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution

    def check(self, where: Where) -> None:
        for index, term in enumerate(self.required):
            term.check(where.below(f"{_REQUIRED}[{index}]"))
        for index, weighted in enumerate(self.preferred):
            weighted.pod_affinity_term.check(where.below(f"{_PREFERRED}[{index}].podAffinityTerm"))


class Affinity(ApiStruct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    def check(self, where: Where) -> None:
        if self.node_affinity is not None:
            self.node_affinity.check(where.below("nodeAffinity"))
        if self.pod_affinity is not None:
            self.pod_affinity.check(where.below("podAffinity"))
        if self.pod_anti_affinity is not None:
            self.pod_anti_affinity.check(where.below("podAntiAffinity"))


class TopologySpreadConstraint(ApiStruct, frozen=True):
    max_skew: Annotated[int, Meta(ge=1)]
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Annotated[int, Meta(ge=1)] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: tuple[str, ...] = ()

    def is_hard(self) -> bool:
        return self.when_unsatisfiable == "DoNotSchedule"


def check_spread(constraints: Iterable[TopologySpreadConstraint], where: Where) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        here = where.below(f"[{index}]")
        _check_topology_key(constraint.topology_key, here)
        if constraint.min_domains is not None and not constraint.is_hard():
            raise UserError("is only for whenUnsatisfiable: DoNotSchedule", where=here.below("minDomains"))
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            raise UserError(f"duplicate of {{{pair[0]}, {pair[1]}}}", where=here)
        seen.add(pair)
        _check_selector(constraint.label_selector, here.below("labelSelector"))
        _check_label_keys(constraint.match_label_keys, constraint.label_selector, here.below("matchLabelKeys"))


def _check_topology_key(key: str, where: Where) -> None:
    if fault := label_key_fault(key):
        raise UserError(f"{excerpt(key)} is not a label key: {fault}", where=where.below("topologyKey"))


def _check_selector(selector: LabelSelector | None, where: Where) -> None:
    if selector is not None:
        selector.check(where)


def _check_label_keys(keys: Iterable[str], selector: LabelSelector | None, where: Where) -> None:
    """These keys narrow the selector by the pod's own values; without a selector they mean nothing."""
    seen: set[str] = set()
    for key in keys:
        if selector is None:
            raise UserError("needs a labelSelector", where=where)
        if fault := label_key_fault(key):
            raise UserError(f"{excerpt(key)} is not a label key: {fault}", where=where)
        if key in seen:
            raise UserError(f"{excerpt(key)} is named twice", where=where)
        seen.add(key)
