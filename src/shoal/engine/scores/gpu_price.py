"""Prefers the cheapest GPU that satisfies a pod, and a node without GPUs for a pod that requests none.

Each node has a price level: 0 without GPUs, else the position of its model's price in the price table. While the fleet
is idle (see `Tables.is_idle`), a loss of the packing rule is no reason to prefer a node, because the capacity that is
spoiled is not needed. There the price level is compared first, and the loss decides among nodes of one level. A model
that some pods need and that the others could fill comes after all other models. On a loaded fleet the packing rule
decides, except that a pod without GPUs still goes to a node without GPUs: it loses nothing there. If the mix of pods is
unknown, the packing rule prefers no node, and the price level is always compared first.

Rejected: a small amount per dollar, added to the loss. Either it does not outweigh the differences between an idle node
of one GPU and one of eight, or it outweighs what the packing rule gains on a loaded fleet. Rejected as well: an idle
fleet as one of which much is free now. On the public lists the first tenth of the pods then fills the cheap models,
and pods that need these models are refused at the end.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.data.gpu_prices import highest_price_level, price_level, usd_of_gpu
from shoal.data.instances import find_instance
from shoal.engine.asks import Ask
from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.device_notation.names import MEMORY_MIB
from shoal.engine.scores.rule import Points, Rows
from shoal.engine.scores.worth import IN_USE
from shoal.engine.worth.tables import Tables

PER_LEVEL: Final = 2 * IN_USE
"""Steps of loss to a price level: more than a node in use is preferred by, and a pod loses, on an idle fleet."""

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


class GpuPrice:
    """Minus the price level; the same for all nodes of one model."""

    def __init__(self, cluster: Cluster, tables: Tables) -> None:
        self._cluster = cluster
        self._tables = tables
        self._cursor = -1
        self._levels: Points = np.zeros(0, np.int64)
        self._contended: frozenset[str] = frozenset()
        self._level_of: dict[tuple[str, str, str], int] = {}

    def epoch(self) -> object:
        """A new value means that points made before are stale on every node."""
        return self._tables.is_idle, self._tables.contended

    def points(self, _cluster: Cluster, ask: Ask, rows: Rows) -> Points | None:
        first = self._tables.is_idle
        has_gpu_request = ask.devices is not None or bool(ask.claims)
        if has_gpu_request and not first:
            return None
        self._refresh()
        levels = self._levels.take(rows)
        points: Points = levels * -PER_LEVEL if first else -np.minimum(levels, 1)
        return points

    def _refresh(self) -> None:
        cluster = self._cluster
        end = cluster.static_changes.end
        if self._contended != self._tables.contended:
            self._contended = self._tables.contended
            self._cursor = -1
        if self._cursor == end:
            return
        rows = cluster.static_changes.since(self._cursor) if self._cursor >= 0 else None
        self._cursor = end
        if rows is None or len(self._levels) != cluster.capacity:
            self._levels = np.zeros(cluster.capacity, np.int64)
            rows = cluster.all_rows()
        for row in rows.tolist():
            self._levels[row] = self._level(row)

    def _level(self, row: int) -> int:
        labels = self._cluster.labels
        product = labels.get(row, GPU_MODEL_LABEL) or ""
        machine = labels.get(row, _INSTANCE_TYPE) or ""
        # GPUs of other vendors are amounts of a resource; the type of the machine says that the node has them.
        if not product and not self._cluster.devices.count.item(row) and find_instance(machine) is None:
            return 0
        if product in self._contended:
            return highest_price_level()
        facts = product, machine, labels.get(row, MEMORY_MIB) or ""
        level = self._level_of.get(facts)
        if level is None:
            memory = facts[2]
            usd = usd_of_gpu(product, machine, int(memory) if memory.isascii() and memory.isdigit() else 0)
            level = self._level_of[facts] = price_level(usd)
        return level
