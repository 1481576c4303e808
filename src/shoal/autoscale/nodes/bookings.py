"""Keeps capacity for pods that do not exist yet: they take their places before other pods are planned."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from shoal.api.pod import Pod
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key


def on_present_nodes(given: PlanningInput, pods: Sequence[Pod]) -> NodePlan:
    """A plan for these pods in which no node is provisioned. Nodes that start count as what they will be."""
    pools = tuple(replace(pool, replicas=pool.replicas or 0) for pool in given.pools)
    return NodePlanner(replace(given, pools=pools, pods=tuple(pods))).plan()


def with_bookings(given: PlanningInput, pods: Sequence[Pod]) -> tuple[PlanningInput, frozenset[str]]:
    """The same with these pods on nodes, and those of them that find no place, by namespace and name."""
    if not pods:
        return given, frozenset()
    placed = on_present_nodes(given, pods).placed
    homes: dict[str, list[Pod]] = {}
    for pod in pods:
        if (home := placed.get(pod_key(pod))) is not None:
            homes.setdefault(home, []).append(pod)
    nodes = tuple(replace(node, pods=(*node.pods, *homes.get(node.name, ()))) for node in given.nodes)
    return replace(given, nodes=nodes), frozenset(pod_key(pod) for pod in pods) - placed.keys()
