"""Prefers the node that is fullest in the requested resources, for requests that no finer score covers.

Memory, virtual GPUs, fractions on several devices and replicas look at compute, MIG instances at the room left for
their own profile. Points go from 0 to 100 in the steps of whole percents, so near-equals tie and fill one node first.
"""

from __future__ import annotations

import numpy as np

from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import MigTiles
from shoal.engine.scores.rule import BEST, NodeRule, Points
from shoal.engine.window import Window


def fullest(cluster: Cluster, ask: Ask) -> NodeRule:
    """The rule for one ask."""
    column = facts.GPU_MILLI
    if isinstance(ask.devices, MigTiles):
        column = cluster.column(RESOURCE_PREFIX + ask.devices.tiles[0][0])

    def points(window: Window) -> Points:
        free = cluster.free[window.rows, column]
        total = np.maximum(cluster.total[window.rows, column], 1)
        result: Points = BEST - np.clip(free * BEST // total, 0, BEST)
        return result

    return points
