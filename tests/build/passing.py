"""Nodes with labels that nobody else has, which come and go: where a cluster forgets early, values are renumbered."""

from __future__ import annotations

from build.nodes import node
from build.scenario import Scenario
from shoal.engine.topology.tree import HOSTNAME

KEYS = (HOSTNAME, "host", "zone")


def pass_through(world: Scenario, tag: str) -> None:
    """Enough of them to outnumber what is there."""
    for index in range(2 * len(world.cluster.row_of) + 2):
        name = f"{tag}-{index}"
        passing = node(name).gpus(1).model(name)
        for key in KEYS:
            passing = passing.label(key, name)
        world.see(passing).lose(name)
