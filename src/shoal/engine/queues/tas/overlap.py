"""Finds nodes that two flavors both count: usage by one reduces what is free for the other, unless a feature gate says
otherwise.

Only topologies that end at the host name can tell; for the others a domain is a sum over nodes, and a share of a sum
says nothing about a node.

Pod sets of one workload never share room on such a node, gate or not: what they were promised is kept by host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.engine.queues.tas.flavor_topology import HOSTNAME, Column, FlavorTopology, Overlap

if TYPE_CHECKING:
    from shoal.engine.queues.state import Queues


OVERLAPS = "TASHandleOverlappingFlavors"


def overlaps(queues: Queues, forest: FlavorTopology) -> tuple[Overlap, ...]:
    """Worked out once: forests are made anew, all of them, when flavors, topologies or nodes change."""
    if forest.overlaps is None:
        forest.overlaps = tuple(_overlaps(queues, forest)) if forest.by_host else ()
    return forest.overlaps


def _overlaps(queues: Queues, forest: FlavorTopology) -> list[Overlap]:
    found = []
    for name in sorted(queues.flavors):
        other = queues.forest(name) if name != forest.flavor.name else None
        if other is None or not other.by_host:
            continue
        pairs = [
            (leaf, twin)
            for leaf, path in enumerate(forest.paths[-1])
            if (twin := other.leaf((HOSTNAME,), path[-1:])) is not None
        ]
        if pairs:
            here, there = np.array(pairs, np.intp).T
            found.append(Overlap(other, here, there))
    return found


def free_of_all(queues: Queues, forest: FlavorTopology, name: str) -> Column | None:
    """What is free of a resource once other flavors' use of the same nodes is taken off. Not to be written to."""
    column = forest.free.get(name)
    if OVERLAPS not in queues.settings.gates:
        return column
    for other, here, there in overlaps(queues, forest):
        if column is not None and name in other.free:
            used = other.capacity[name][there] - other.free[name][there]
            column = column.copy()
            column[here] -= used
    return column
