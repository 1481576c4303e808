"""Tracks which kinds of GPU pods share a node: a column for the policies that read it.

Kept out of the cluster's own columns because one policy in ten reads it and every placement would pay for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import WholeGpus

KINDS = 18
"""No GPU, a sharer of whatever kind, or a holder of 1 to 16 whole GPUs; more count as 16."""


def tenant_kind(ask: Ask) -> int:
    """The kind of neighbour a pod is: 0 none, 1 a sharer, 1 + n a holder of n whole GPUs."""
    match ask.devices:
        case None:
            return 0
        case WholeGpus(count):
            return min(1 + count, KINDS - 1)
        case _:
            return 1


class TenantsColumn:
    """For every node and kind, whether such a pod is there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = -1
        self.present: NDArray[np.bool_] = np.zeros((0, KINDS), np.bool_)

    def refresh(self) -> None:
        cluster = self._cluster
        changes = cluster.changes
        if self._cursor == changes.end and len(self.present) == cluster.capacity:
            return
        rows = changes.since(self._cursor)
        self._cursor = changes.end
        if rows is None or len(self.present) != cluster.capacity:
            self.present = np.zeros((cluster.capacity, KINDS), np.bool_)
            rows = cluster.all_rows()
        for row in rows.tolist():
            present = self.present[row]
            present[:] = False
            for key in cluster.pods_on(row):
                present[tenant_kind(cluster.pods[key].ask)] = True
