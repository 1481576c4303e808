"""Converts one object of Kueue's kinds, or a node, to the queue engine's fact, with the reader of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import structs

from shoal.api.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from shoal.api.node import Node
from shoal.api.topology import KueueTopology
from shoal.client.ecosystem_kinds import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    KUEUE_TOPOLOGIES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
)
from shoal.client.item import Item
from shoal.client.kind import NODES, Kind
from shoal.engine.from_api.queues import (
    check_facts_of,
    cluster_queue_facts_of,
    cohort_facts_of,
    flavor_facts_of,
    local_queue_facts_of,
    queue_node_of,
    topology_levels_of,
)
from shoal.engine.queues.admission_checks import AdmissionCheckFacts
from shoal.engine.queues.facts import Amounts, ClusterQueueFacts, CohortFacts, FlavorFacts, LocalQueueFacts
from shoal.engine.queues.state import Fact
from shoal.engine.queues.topology_facts import QueueNode, TopologyLevels
from shoal.store.watched.reading import value_of

FACT_OF: dict[Kind, type[Fact]] = {
    NODES: QueueNode,
    LOCAL_QUEUES: LocalQueueFacts,
    CLUSTER_QUEUES: ClusterQueueFacts,
    RESOURCE_FLAVORS: FlavorFacts,
    KUEUE_TOPOLOGIES: TopologyLevels,
    COHORTS: CohortFacts,
    ADMISSION_CHECKS: AdmissionCheckFacts,
}
"""The fact type of each kind."""

_PLAIN: dict[Kind, Callable[[Kind, Item], Fact]] = {
    CLUSTER_QUEUES: lambda served, item: cluster_queue_facts_of(value_of(served, item, ClusterQueue)),
    RESOURCE_FLAVORS: lambda served, item: flavor_facts_of(value_of(served, item, ResourceFlavor)),
    KUEUE_TOPOLOGIES: lambda served, item: topology_levels_of(value_of(served, item, KueueTopology)),
    COHORTS: lambda served, item: cohort_facts_of(value_of(served, item, Cohort)),
    ADMISSION_CHECKS: lambda served, item: check_facts_of(value_of(served, item, AdmissionCheck)),
}
"""Readers that need the object only."""


class FactReader:
    """`taken`: the usage of a node by pods outside queues."""

    def __init__(self, taken: Callable[[str], Amounts]) -> None:
        self._taken = taken

    def read(self, kind: Kind, served: Kind, item: Item, weights: Mapping[str, float]) -> Fact:
        """`weights`: the resource weights, where local queues are ordered by usage. Raises UserError."""
        if kind is NODES:
            return queue_node_of(value_of(served, item, Node), self._taken(item.name))
        if kind is LOCAL_QUEUES:
            return _local_queue(value_of(served, item, LocalQueue), weights)
        return _PLAIN[kind](served, item)


def _local_queue(queue: LocalQueue, weights: Mapping[str, float]) -> LocalQueueFacts:
    """The recorded usage is that of its last update; it has changed since then."""
    reported = queue.status.fair_sharing
    sharing = reported.admission_fair_sharing_status if reported is not None else None
    since = sharing.last_update if sharing is not None else None
    facts = local_queue_facts_of(queue, weights)
    return facts if since is None else structs.replace(facts, used_s=since.timestamp())
