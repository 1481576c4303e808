"""Represents a cluster queue: a leaf of the quota tree, with the workloads that hold its quota."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from shoal.engine.queues.facts import ClusterQueueFacts, QuotaAssignment, ResourceGroup, Usage, WorkloadFacts
from shoal.engine.queues.quota_tree import CohortNode


class ClusterQueue(CohortNode):
    __slots__ = ("closed", "facts", "generation", "group_of", "held")

    def __init__(self, facts: ClusterQueueFacts) -> None:
        super().__init__(facts.name)
        self.facts = facts
        self.held: dict[str, AdmittedWorkload] = {}
        """By workload, in the order in which they came."""
        self.closed: tuple[str, str] | None = None
        """Why nothing is admitted, as (reason, words): FlavorNotFound, Stopped, CohortCycle, ..."""
        self.generation = 0
        """Moves whenever quotas of its tree change."""
        self.group_of: dict[str, ResourceGroup] = {}
        """By resource."""
        self.adopt(facts)

    def adopt(self, facts: ClusterQueueFacts) -> None:
        self.facts = facts
        self.weight = facts.weight
        self.group_of = {resource: group for group in facts.groups for resource in group.resources}
        self.set_quotas(facts.groups)


@dataclass(slots=True, eq=False)
class AdmittedWorkload:
    """A workload that holds quota."""

    facts: WorkloadFacts
    admission: QuotaAssignment
    queue: ClusterQueue
    usage: Usage
    stamp_s: float
    evicted: bool = False
    """It is being evicted and still holds its quota."""
    topology_flavors: tuple[str, ...] = field(init=False)
    """Flavors in whose domains it has pods."""

    def __post_init__(self) -> None:
        placed = [each for each in self.admission.pod_sets if each.topology is not None]
        self.topology_flavors = tuple(dict.fromkeys(name for each in placed for name in each.flavors.values()))

    def stop(self, now_s: float, why: str) -> None:
        """It is being evicted; its quota is released afterwards."""
        self.evicted = True
        self.facts = msgspec.structs.replace(self.facts, evicted_s=now_s, evicted_why=why)

    @property
    def key(self) -> str:
        return self.facts.key

    @property
    def priority(self) -> int:
        return self.facts.priority
