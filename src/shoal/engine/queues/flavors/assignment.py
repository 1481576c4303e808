"""Represents the result of flavor assignment: a flavor per pod set and resource, the usage, and the reasons for
refusals.

The value is worked on after the search: the round adds topology, or lowers a pod set that topology turns away.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from shoal.engine.queues.facts import FlavorResource, PodSetAdmission, QuotaAssignment, Usage
from shoal.engine.queues.flavors.modes import Choice, Mode
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.topology_facts import TopologyAssignment
from shoal.engine.queues.workloads import FlavorSearchProgress, Total

SEVEREST_FIRST = (Wait.NO_FLAVOR, Wait.EXCEEDS_MAX_QUOTA, Wait.QUOTA, Wait.TOPOLOGY, Wait.VICTIMS)
"""Of several pod sets the worst is reported."""


@dataclass(slots=True)
class PodSetChoice:
    """What one pod set got."""

    total: Total
    flavors: dict[str, Choice] = field(default_factory=dict)
    """By resource; empty where none was found, and where nothing that counts is asked for."""
    reasons: list[str] = field(default_factory=list)
    """Why not at once, flavor by flavor."""
    code: Wait | None = None
    """The same in one word; None where it fits."""
    topology: TopologyAssignment | None = None

    @property
    def mode(self) -> Mode:
        if self.code is None:
            return Mode.FIT
        lowest = min((choice.mode for choice in self.flavors.values()), default=Mode.NO_FIT)
        return Mode.PREEMPT if Mode.NO_FIT < lowest < Mode.FIT else lowest

    def lower(self, mode: Mode, reason: str, code: Wait) -> None:
        """All of it is at most so good, for a reason that quota does not know."""
        self.limit(mode)
        self.reasons = [*self.reasons, reason]
        self.code = code

    def limit(self, mode: Mode) -> None:
        """All of its resources are at most so good."""
        self.flavors = {
            resource: msgspec.structs.replace(choice, mode=min(choice.mode, mode))
            for resource, choice in self.flavors.items()
        }


@dataclass(slots=True)
class Assignment:
    """Flavors for a workload. Pod sets after one without a flavor are not in it: they were not searched."""

    pod_sets: list[PodSetChoice]
    usage: Usage
    borrow: int
    """The highest borrowing level of all."""
    tried: FlavorSearchProgress

    @property
    def mode(self) -> Mode:
        """FIT, PREEMPT (which covers reclaiming, and preemption without candidates) or NO_FIT."""
        return min((pod_set.mode for pod_set in self.pod_sets), default=Mode.NO_FIT)

    @property
    def to_preempt(self) -> frozenset[FlavorResource]:
        """Where others would have to yield."""
        return frozenset(
            (choice.flavor, resource)
            for pod_set in self.pod_sets
            for resource, choice in pod_set.flavors.items()
            if choice.mode is not Mode.FIT
        )

    @property
    def why(self) -> Wait:
        """Why it waits."""
        codes = [pod_set.code for pod_set in self.pod_sets if pod_set.code is not None]
        return min(codes, key=severity, default=Wait.QUOTA)

    @property
    def message(self) -> str:
        return "; ".join(
            f"couldn't assign flavors to pod set {pod_set.total.pod_set.name}: {', '.join(sorted(pod_set.reasons))}"
            for pod_set in self.pod_sets
            if pod_set.reasons
        )

    def admission(self, cluster_queue: str) -> QuotaAssignment:
        """What would be written down."""
        return QuotaAssignment(cluster_queue, tuple(_admission(pod_set) for pod_set in self.pod_sets))


def severity(code: Wait) -> int:
    return SEVEREST_FIRST.index(code) if code in SEVEREST_FIRST else len(SEVEREST_FIRST)


def _admission(chosen: PodSetChoice) -> PodSetAdmission:
    total = chosen.total
    return PodSetAdmission(
        total.pod_set.name,
        total.count,
        {resource: choice.flavor for resource, choice in chosen.flavors.items()},
        {resource: total.requests[resource] for resource in chosen.flavors if resource in total.requests},
        chosen.topology,
    )
