"""Groups the terminating pods by node, for the nominations of one pass over all waiting pods.

A nomination is found by trying as if terminating pods had gone. Removing all of them for each waiting pod would cost
their number times that of the waiting pods; so only those are removed whose room could matter: on the nodes that were
nominated before, or on those where the count says that the ask may fit once they have left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.facts import GPU_BEST, GPU_MILLI, GPU_WHOLE, NEVER_LACKING

Rows = NDArray[np.int64]


class Departures:
    """Created when first needed: in most cycles no pod terminates."""

    __slots__ = ("_by_row", "_cluster", "_left", "_rows")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_row: dict[int, list[str]] = {}
        for pod in cluster.terminating:
            self._by_row.setdefault(cluster.pods[pod].row, []).append(pod)
        self._rows = np.array(sorted(self._by_row), np.int64)
        self._left: NDArray[np.int64] | None = None

    def all_pods(self) -> list[str]:
        return list(self._cluster.terminating)

    def on(self, rows: Rows) -> list[str]:
        """Who leaves one of these nodes."""
        return [pod for row in rows.tolist() for pod in self._by_row.get(row, ())]

    def nominated(self, pods: list[str]) -> Rows:
        """The nodes for which these pods were nominated."""
        cluster = self._cluster
        rows = {cluster.row_of.get(cluster.pending[pod].nominated, -1) for pod in pods}
        return np.array(sorted(rows - {-1}), np.int64)

    def hopeful(self, charge: Charge) -> Rows:
        """Nodes with terminating pods on which the ask may fit afterwards, by the count."""
        cluster = self._cluster
        rows = self._rows
        if self._left is None or self._left.shape[1] != cluster.width:
            self._left = np.zeros((len(rows), cluster.width), np.int64)
            for line, row in enumerate(rows.tolist()):
                for pod in self._by_row[row]:
                    self._left[line] += cluster.pods[pod].charge.taken
        free = cluster.free[rows] + self._left
        need = np.full(cluster.width, NEVER_LACKING, np.int64)
        need[: len(charge.need)] = charge.need
        # How much of a device is free in one piece does not add up; the sum over a node's devices does.
        need[[GPU_WHOLE, GPU_BEST]] = NEVER_LACKING
        need[GPU_MILLI] = charge.gpu_milli or NEVER_LACKING
        may_fit = (free >= need).all(axis=1)
        if cluster.devices.odd:
            may_fit |= np.isin(rows, list(cluster.devices.odd))
        return rows[may_fit]
