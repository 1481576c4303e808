"""Provides the facts of nodes that all computations of value use, updated by the change log.

Two numbers per node say all that the tables need: its position in the block tables (its model, its empty devices)
and where in the balance table (its free CPU and GPU). A pod moves the second by a constant, so what the balance loses
is a difference of two look-ups. Computed once per change, not once per change and shape; a handful of rows is quicker
one by one than through numpy, and both ways are whole-number arithmetic and agree to the unit.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.device_demand import FULL_MILLI
from shoal.engine.facts import CPU, GPU_MILLI, GPU_WHOLE
from shoal.engine.worth.piece_worth import STEPS
from shoal.engine.worth.tables import BALANCE_GRAIN, Tables

Ints = NDArray[np.int64]

PIECES: Final = STEPS + 1
_FEW: Final = 8


class WorthColumns:
    """Node columns for one set of tables."""

    def __init__(self, cluster: Cluster, tables: Tables) -> None:
        self._cluster = cluster
        self._tables = tables
        self._epoch = 0
        self._cursor = -1
        self._static_cursor = -1
        self._block_start: Ints = np.zeros(0, np.int64)
        self.piece_start: Ints = np.zeros(0, np.int64)
        """Where the row's model begins in a flat piece table."""
        self.block_at: Ints = np.zeros(0, np.int64)
        """The index of the row in a flat block table."""
        self.balance_at: Ints = np.zeros(0, np.int64)
        """The index of the row in the flat balance table."""

    def refresh(self) -> None:
        """Follow the tables and the change log."""
        cluster = self._cluster
        if self._static_cursor != cluster.static_changes.end or self._epoch != self._tables.epoch:
            codes = cluster.labels.column(GPU_MODEL_LABEL).codes.astype(np.int64)
            self.piece_start = codes * PIECES
            self._block_start = codes * self._tables.block.shape[1]
            self._static_cursor = cluster.static_changes.end
            self._epoch = self._tables.epoch
            self._cursor = -1
        end = cluster.changes.end
        if self._cursor == end:
            return
        rows = cluster.changes.since(self._cursor)
        self._cursor = end
        if rows is None:
            if len(self.block_at) != cluster.capacity:
                self.block_at = np.zeros(cluster.capacity, np.int64)
                self.balance_at = np.zeros(cluster.capacity, np.int64)
            # A slice reads the columns where they lie; row numbers would have them copied first.
            self._compute(slice(cluster.rows))
        elif len(rows) > _FEW:
            self._compute(rows)
        else:
            self._compute_few(rows.tolist())

    def forget(self) -> None:
        """Start over with all nodes when next asked."""
        self._cursor = -1

    def _compute(self, rows: Ints | slice) -> None:
        tables = self._tables
        free = self._cluster.free[rows]
        self.block_at[rows] = self._block_start[rows] + self._empty(rows, free)
        gpu = np.clip(free[:, GPU_MILLI] // BALANCE_GRAIN, 0, tables.balance_width - 1)
        cpu = np.clip(tables.cpu_in_gpus(free[:, CPU]) // BALANCE_GRAIN, 0, tables.balance_rows - 1)
        self.balance_at[rows] = cpu * tables.balance_width + gpu

    def _empty(self, rows: Ints | slice, free: Ints) -> Ints:
        devices = self._cluster.devices
        if not devices.odd:
            return free[:, GPU_WHOLE]
        # Some nodes count replicas there.
        left = devices.free_rows(self._cluster.all_rows()[rows])
        empty: Ints = np.count_nonzero(left == FULL_MILLI, axis=1)
        return empty

    def _compute_few(self, rows: list[int]) -> None:
        tables = self._tables
        lines, width = tables.balance_rows, tables.balance_width
        devices = self._cluster.devices
        odd = devices.odd
        free = self._cluster.free
        start = self._block_start
        block_at, balance_at = self.block_at, self.balance_at
        for row in rows:
            empty = devices.free(row).count(FULL_MILLI) if row in odd else free.item(row, GPU_WHOLE)
            block_at[row] = start.item(row) + empty
            gpu = free.item(row, GPU_MILLI) // BALANCE_GRAIN
            cpu = tables.cpu_in_gpu(free.item(row, CPU)) // BALANCE_GRAIN
            # Written out: `min` and `max` cost as much as all the rest.
            gpu = 0 if gpu < 0 else gpu if gpu < width else width - 1
            cpu = 0 if cpu < 0 else cpu if cpu < lines else lines - 1
            balance_at[row] = cpu * width + gpu
