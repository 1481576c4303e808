"""Creates the domains of flavors with a topology at their first use, and charges them from then on.

Workloads are charged to a domain when they get places in it; a forest that is made later counts the existing ones. All
are forgotten when nodes, flavors or topologies change.

Rejected: making them with the facts. Most queues have no topology, and who tells ten thousand nodes asks for no domain
in between.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.facts import FlavorFacts
from shoal.engine.queues.tas.flavor_topology import FlavorTopology
from shoal.engine.queues.topology_facts import QueueNode, TopologyLevels


class FlavorTopologies:
    """By flavor, over the facts of the queues: the same objects, as they are at each moment."""

    __slots__ = ("_by_flavor", "_flavors", "_held", "_nodes", "_topologies")

    def __init__(
        self,
        flavors: Mapping[str, FlavorFacts],
        topologies: Mapping[str, TopologyLevels],
        nodes: Mapping[str, QueueNode],
        held: Mapping[str, AdmittedWorkload],
    ) -> None:
        self._flavors = flavors
        self._topologies = topologies
        self._nodes = nodes
        self._held = held
        self._by_flavor: dict[str, FlavorTopology] = {}

    def of(self, flavor: str) -> FlavorTopology | None:
        """With what is used in its domains; None without topology."""
        found = self._by_flavor.get(flavor)
        if found is not None:
            return found
        facts = self._flavors.get(flavor)
        levels = self._topologies.get(facts.topology) if facts is not None and facts.topology else None
        if facts is None or levels is None:
            return None
        forest = FlavorTopology(facts, levels.levels, self._nodes.values())
        for held in self._held.values():
            if held.key in held.queue.held:
                _charge(forest, flavor, held, 1)
        self._by_flavor[flavor] = forest
        return forest

    def charge(self, held: AdmittedWorkload, sign: int) -> None:
        """A workload takes its domains (1), or releases them (-1)."""
        for flavor in held.topology_flavors:
            forest = self._by_flavor.get(flavor)
            if forest is not None:
                _charge(forest, flavor, held, sign)

    def forget(self) -> None:
        self._by_flavor.clear()


def _charge(forest: FlavorTopology, flavor: str, held: AdmittedWorkload, sign: int) -> None:
    wanted = {pod_set.name: pod_set for pod_set in held.facts.pod_sets}
    for pod_set in held.admission.pod_sets:
        if pod_set.topology is not None and flavor in pod_set.flavors.values() and pod_set.name in wanted:
            forest.charge(pod_set.topology, wanted[pod_set.name].on_node, sign)
