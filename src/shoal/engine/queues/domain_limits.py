"""Finds the pod sets that no domain of the level which they require can hold, even with nothing else on its nodes.

Guarantees: what is found here is true whatever pods and workloads end. Nodes count as ready and not cordoned, and with
all their devices healthy, since those states end without another node. A pod set with a minimum counts with that
minimum.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec import structs

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorFacts, PodSet, WorkloadFacts
from shoal.engine.queues.flavors.eligibility import asks_for_topology, topology_applies, why_barred
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tas.availability import DomainAvailability
from shoal.engine.queues.tas.flavor_topology import FlavorTopology
from shoal.engine.queues.tas.levels_request import read
from shoal.engine.queues.tas.pod_counts import DomainPodCounts
from shoal.engine.queues.topology_facts import QueueNode, TopologyRequest

_OF_NODE_STATES = "node.kubernetes.io/"
"""Taints with this prefix say that a node is not ready or cordoned."""


class DomainLimit(msgspec.Struct, frozen=True):
    """What a pod set lacks in every domain."""

    pod_set: str
    topology: str
    needs: int
    """Pods that must be in one domain of the level, or anywhere in the topology."""
    level: str
    """Empty: they may be spread over all domains."""
    domain: str
    """The largest one of the level."""
    fits: int
    """Pods that it holds when it is empty."""
    is_slice: bool = False
    """Whether the pods of one slice are meant, not all pods of the set."""
    wider: str = ""
    """The nearest wider level that has a domain for them when it is empty."""
    may_spread: bool = False
    """Whether all domains together hold the set when they are empty."""
    is_repelled: bool = False
    """Whether only taints that the pods do not tolerate keep them out of a domain that is large enough."""


class DomainLimits:
    """Answers for the facts as they are; to be thrown away when nodes, flavors or topologies change."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._empty: dict[tuple[str, bool], FlavorTopology | None] = {}
        self._known: dict[tuple[str, bytes], DomainLimit | None] = {}
        """By cluster queue and what a pod set says: a backlog is often one template many times."""

    def of(self, facts: WorkloadFacts) -> list[DomainLimit]:
        """One for each pod set that no flavor of its queue has a domain for."""
        local = self._queues.local_queues.get(facts.queue)
        queue = None if local is None else self._queues.cluster_queues.get(local.cluster_queue)
        if queue is None:
            return []
        found = (self._of_pod_set(queue, pod_set) for pod_set in facts.pod_sets if asks_for_topology(pod_set.topology))
        return [limit for limit in found if limit is not None]

    def _of_pod_set(self, queue: ClusterQueue, pod_set: PodSet) -> DomainLimit | None:
        """The flavor that holds most."""
        key = queue.name, msgspec.json.encode(pod_set)
        if key not in self._known:
            self._known[key] = self._searched(queue, pod_set)
        return self._known[key]

    def _searched(self, queue: ClusterQueue, pod_set: PodSet) -> DomainLimit | None:
        best: DomainLimit | None = None
        for flavor in self._flavors(queue, pod_set):
            forest = self._forest(flavor)
            found = None if forest is None else self._limit(forest, pod_set)
            if found is None:
                return None
            found = self._with_cause(flavor, pod_set, found)
            best = found if best is None or found.fits > best.fits else best
        return best

    def _flavors(self, queue: ClusterQueue, pod_set: PodSet) -> Iterator[str]:
        names = dict.fromkeys(flavor.name for group in queue.facts.groups for flavor in group.flavors)
        for name in names:
            if topology_applies(self._queues, name) and not why_barred(self._queues, queue, name, pod_set):
                yield name

    def _with_cause(self, flavor: str, pod_set: PodSet, found: DomainLimit) -> DomainLimit:
        untainted = self._forest(flavor, is_untainted=True)
        if untainted is None or pod_set.topology is None:
            return found
        return structs.replace(found, is_repelled=self._lacking(untainted, pod_set, pod_set.topology) is None)

    def _forest(self, flavor: str, *, is_untainted: bool = False) -> FlavorTopology | None:
        """The domains of the flavor as if nothing ran there."""
        key = flavor, is_untainted
        if key not in self._empty:
            facts: FlavorFacts = self._queues.flavors[flavor]
            levels = self._queues.topologies.get(facts.topology)
            nodes = [_at_best(node) for node in self._queues.nodes.values()]
            if is_untainted:
                nodes = [structs.replace(node, taints=()) for node in nodes]
            self._empty[key] = None if levels is None else FlavorTopology(facts, levels.levels, nodes)
        found = self._empty[key]
        return found if found is not None and found.size else None

    def _limit(self, forest: FlavorTopology, pod_set: PodSet) -> DomainLimit | None:
        topology = pod_set.topology
        found = None if topology is None else self._lacking(forest, pod_set, topology)
        if found is None or topology is None or not found.level:
            return found
        for level in reversed(forest.levels[: forest.levels.index(found.level)]):
            field = "slice_level" if found.is_slice else "required"
            if self._holds(forest, pod_set, structs.replace(topology, **{field: level})):
                return structs.replace(found, wider=level)
        preferred = structs.replace(topology, required="", preferred=topology.required)
        return structs.replace(found, may_spread=not found.is_slice and self._holds(forest, pod_set, preferred))

    def _holds(self, forest: FlavorTopology, pod_set: PodSet, topology: TopologyRequest) -> bool:
        is_unreadable = isinstance(read(forest, topology, self._queues.settings.gates, implied=False), str)
        return not is_unreadable and self._lacking(forest, pod_set, topology) is None

    def _lacking(self, forest: FlavorTopology, pod_set: PodSet, topology: TopologyRequest) -> DomainLimit | None:
        """None too where the request cannot be read: that is another fault."""
        ask = read(forest, topology, self._queues.settings.gates, implied=False)
        if isinstance(ask, str):
            return None
        counts = DomainAvailability(self._queues, forest, {}, empty=True).pod_counts(ask, pod_set, None)
        pods = pod_set.count if pod_set.min_count is None else min(pod_set.min_count, pod_set.count)
        need, size = pods // ask.size, ask.size
        if size > 1 and not counts.level(ask.slice_depth).units.any():
            return _found(forest, counts, pod_set, ask.slice_depth, size, is_slice=True)
        if ask.required:
            fits = int(counts.level(ask.depth).units.max(initial=0))
            return None if fits >= need else _found(forest, counts, pod_set, ask.depth, need * size)
        total = int(counts.level(0).units.sum()) * size
        if total >= need * size:
            return None
        return DomainLimit(pod_set.name, forest.flavor.topology, need * size, "", "", total)


def _found(
    forest: FlavorTopology, counts: DomainPodCounts, pod_set: PodSet, depth: int, needs: int, *, is_slice: bool = False
) -> DomainLimit:
    level = counts.level(depth)
    amounts = level.pods if is_slice else level.units * counts.ask.units[depth]
    largest = int(np.argmax(amounts))
    path = forest.paths[depth][largest]
    is_host = forest.by_host and depth == len(forest.levels) - 1
    return DomainLimit(
        pod_set.name,
        forest.flavor.topology,
        needs,
        forest.levels[depth],
        path[-1] if is_host else "/".join(path),
        int(amounts[largest]),
        is_slice,
    )


def _at_best(node: QueueNode) -> QueueNode:
    return structs.replace(
        node,
        ready=True,
        unschedulable=False,
        taints=tuple(taint for taint in node.taints if not taint.key.startswith(_OF_NODE_STATES)),
        allocatable={**node.allocatable, **node.installed},
        taken={},
    )
