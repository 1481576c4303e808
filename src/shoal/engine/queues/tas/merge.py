"""Adds topology assignments together, and removes pods from one."""

from __future__ import annotations

from shoal.engine.queues.tas.flavor_topology import FlavorTopology, Path
from shoal.engine.queues.topology_facts import TopologyAssignment


def merged(forest: FlavorTopology, one: TopologyAssignment, other: TopologyAssignment) -> TopologyAssignment:
    """Pods of both, domains in the order of the forest; such as it does not know come first."""
    pods: dict[Path, int] = dict(one.domains)
    for values, more in other.domains:
        pods[values] = pods.get(values, 0) + more

    def place(item: tuple[Path, int]) -> tuple[int, Path]:
        leaf = forest.leaf(one.levels, item[0])
        return (-1 if leaf is None else leaf), item[0]

    return TopologyAssignment(one.levels, tuple(sorted(pods.items(), key=place)))


def without(assignment: TopologyAssignment, host: str) -> tuple[TopologyAssignment, int]:
    """What is left when a node is gone, and how many pods were there."""
    left = tuple(domain for domain in assignment.domains if domain[0][-1] != host)
    lost = sum(pods for values, pods in assignment.domains if values[-1] == host)
    return TopologyAssignment(assignment.levels, left), lost


def shortened(assignment: TopologyAssignment, count: int) -> TopologyAssignment:
    """The first pods only."""
    kept = []
    for values, pods in assignment.domains:
        if count > 0:
            kept.append((values, min(pods, count)))
            count -= pods
    return TopologyAssignment(assignment.levels, tuple(kept))
