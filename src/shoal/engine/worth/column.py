"""What every computation of worth reads of a node, kept up to date from the change log.

All shapes start from these columns, so they are computed once per change and not once per change and shape. A handful
of rows is quicker one by one than through numpy; both ways are whole-number arithmetic and agree to the unit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.worth.patience import STEPS
from shoal.engine.worth.tables import Tables

Ints = NDArray[np.int64]

PIECES = STEPS + 1
_FEW = 8


class WorthColumns:
    """Node columns for one set of tables."""

    def __init__(self, cluster: Cluster, tables: Tables) -> None:
        self._cluster = cluster
        self._tables = tables
        self._epoch = 0
        self._cursor = -1
        self._static_cursor = -1
        self.cpu: Ints = np.zeros(0, np.int64)
        """Free CPU counted in thousandths of the GPUs it could serve."""
        self.balance: Ints = np.zeros(0, np.int64)
        """Units that free GPU and free CPU are worth beside each other."""
        self.piece_start: Ints = np.zeros(0, np.int64)
        """Where the row's model begins in a flat piece table."""
        self.block_start: Ints = np.zeros(0, np.int64)
        """Where the row's model begins in a flat block table."""

    def refresh(self) -> None:
        """Follow the tables and the change log."""
        cluster = self._cluster
        if self._static_cursor != cluster.static_changes.end or self._epoch != self._tables.epoch:
            codes = cluster.labels.column(GPU_MODEL_LABEL).codes.astype(np.int64)
            self.piece_start = codes * PIECES
            self.block_start = codes * self._tables.block.shape[1]
            self._static_cursor = cluster.static_changes.end
            self._epoch = self._tables.epoch
        end = cluster.changes.end
        if self._cursor == end and len(self.cpu) == cluster.capacity:
            return
        rows = cluster.changes.since(self._cursor)
        self._cursor = end
        if rows is None or len(self.cpu) != cluster.capacity:
            self.cpu = np.zeros(cluster.capacity, np.int64)
            self.balance = np.zeros(cluster.capacity, np.int64)
            rows = cluster.all_rows()
        if len(rows) > _FEW:
            self._compute(rows)
        else:
            for row in rows.tolist():
                self._compute_one(row)

    def _compute(self, rows: Ints) -> None:
        free = self._cluster.free.take(rows, axis=0)
        gpu = np.maximum(free[:, facts.GPU_MILLI], 0)
        cpu = self._tables.cpu_in_gpus(np.maximum(free[:, facts.CPU], 0))
        self.cpu[rows] = cpu
        self.balance[rows] = gpu * cpu * self._tables.balance_units // ((gpu + cpu) | 1)

    def _compute_one(self, row: int) -> None:
        free = self._cluster.free
        gpu = max(free.item(row, facts.GPU_MILLI), 0)
        cpu = self._tables.cpu_in_gpu(max(free.item(row, facts.CPU), 0))
        self.cpu[row] = cpu
        self.balance[row] = gpu * cpu * self._tables.balance_units // ((gpu + cpu) | 1)
