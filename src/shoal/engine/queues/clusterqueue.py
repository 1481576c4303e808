"""A cluster queue: a leaf of the quota tree, with who holds its quota."""

from __future__ import annotations

from shoal.engine.queues.facts import ClusterQueueFacts, ResourceGroup
from shoal.engine.queues.tree import CohortNode
from shoal.engine.queues.workloads import AdmittedWorkload


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
