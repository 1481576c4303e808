"""Determines whether the nodes of a flavor may run a pod set, independent of quota.

A pod set that names labels is held only against the labels that the flavor itself names: others say nothing about its
nodes, so a flavor without labels accepts every pod set. Topology separates both ways: a pod set that requests one
needs a flavor with it, and one that does not avoids such flavors unless the queue has no others.

Rejected: remembering the answers. Most pod sets and most flavors name nothing, and then the answer costs less than
looking it up would.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.node_affinity import NodeSelector
from shoal.api.taints import untolerated
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorFacts, PodSet
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import TopologyRequest

TOPOLOGY_GATE = "TopologyAwareScheduling"


def why_barred(queues: Queues, queue: ClusterQueue, name: str, pod_set: PodSet) -> str:
    """Why the pod set may not have the flavor; empty where it may."""
    flavor = queues.flavors.get(name)
    if flavor is None:
        return f"flavor {name} not found"
    if (flavor.topology or pod_set.topology is not None) and TOPOLOGY_GATE in queues.settings.gates:
        mismatch = _topology_mismatch(queues, queue, flavor, pod_set.topology)
        if mismatch:
            return mismatch
    if flavor.taints:
        taint = untolerated(flavor.taints, pod_set.tolerations + flavor.tolerations)
        if taint is not None:
            return f"untolerated taint {taint} in flavor {name}"
    if flavor.labels and not _admits(flavor.labels, pod_set.selector, pod_set.affinity):
        return f"flavor {name} doesn't match node affinity"
    return ""


def asks_for_topology(request: TopologyRequest | None) -> bool:
    """A group by itself asks for a common flavor only."""
    return request is not None and bool(
        request.required or request.preferred or request.unconstrained or request.slice_level or request.layers
    )


def topology_applies(queues: Queues, name: str) -> bool:
    """Whether pods of the flavor are placed by topology."""
    flavor = queues.flavors.get(name)
    return flavor is not None and bool(flavor.topology) and TOPOLOGY_GATE in queues.settings.gates


def inferred_flavor(queues: Queues, queue: ClusterQueue, pod_set: PodSet) -> tuple[str, str] | None:
    """The flavor, and a resource to note it under, of pods that ask for nothing that the queue counts: its only one,
    where that has a topology they can be placed in."""
    names = [(flavor.name, group.resources[0]) for group in queue.facts.groups for flavor in group.flavors]
    if len(names) != 1 or not topology_applies(queues, names[0][0]):
        return None
    return None if why_barred(queues, queue, names[0][0], pod_set) else names[0]


def has_only_topology_flavors(queues: Queues, queue: ClusterQueue) -> bool:
    """Whether every flavor of the queue has a topology; its pods then are placed by topology unasked."""
    return all(
        (facts := queues.flavors.get(flavor.name)) is not None and facts.topology
        for group in queue.facts.groups
        for flavor in group.flavors
    )


def _topology_mismatch(
    queues: Queues, queue: ClusterQueue, flavor: FlavorFacts, request: TopologyRequest | None
) -> str:
    if request is None or not asks_for_topology(request):
        if not flavor.topology or has_only_topology_flavors(queues, queue):
            return ""
        return f'Flavor "{flavor.name}" supports only TopologyAwareScheduling'
    if not flavor.topology:
        return f'Flavor "{flavor.name}" does not support TopologyAwareScheduling'
    topology = queues.topologies.get(flavor.topology)
    if topology is None:
        return f'Flavor "{flavor.name}" names a topology that does not exist'
    wanted = (request.required or request.preferred, request.slice_level, *(layer.level for layer in request.layers))
    if any(level and level not in topology.levels for level in wanted):
        return f'Flavor "{flavor.name}" does not contain the requested level'
    return ""


def _admits(labels: Mapping[str, str], selector: Mapping[str, str], affinity: NodeSelector | None) -> bool:
    """Conditions on other keys than the flavor's are left out; a term of which nothing is left holds."""
    if any(labels.get(key, value) != value for key, value in selector.items()):
        return False
    if affinity is None or not affinity.node_selector_terms:
        return True
    return any(
        all(each.matches(labels) for each in term.match_expressions if each.key in labels)
        for term in affinity.node_selector_terms
    )
