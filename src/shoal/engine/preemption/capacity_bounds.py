"""Bounds the nodes that a request may ever use and the number of such pods that fit on them, to limit the search.

Both say too much rather than too little (rules about other pods and the arrangement of devices are left to the trial),
so what they rule out is ruled out for certain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine import facts
from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.suitability import suits

Rows = NDArray[np.int64]

_ENDLESS = 1 << 50


class FeasibleRows:
    """Which nodes have the right labels, taints and model, asked once per ask."""

    __slots__ = ("_cluster", "_known")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Charge, Rows] = {}

    def of(self, charge: Charge) -> Rows:
        """The rows, lowest first."""
        rows = self._known.get(charge)
        if rows is None:
            every = self._cluster.all_rows()
            rows = self._known[charge] = every[suits(self._cluster, charge.ask, every)]
        return rows


class PodCapacity:
    """One ask's amounts that add up over pods."""

    __slots__ = ("_by_device", "_cluster", "_whole", "columns", "taken")

    def __init__(self, cluster: Cluster, charge: Charge) -> None:
        need = charge.need
        columns = [column for column in range(len(need)) if need[column] > 0 and charge.taken[column] > 0]
        if charge.taken[facts.GPU_MILLI] > 0 and facts.GPU_MILLI not in columns:
            columns.append(facts.GPU_MILLI)
        names = cluster.resources.names
        self._cluster = cluster
        self._by_device = [
            place
            for place, column in enumerate(columns)
            if column == facts.GPU_MILLI or names.get(column, "").startswith(RESOURCE_PREFIX)
        ]
        self.columns = np.array(columns, np.int64)
        self.taken = charge.taken[self.columns]
        self._whole = max(int(need[facts.GPU_WHOLE]), 0)

    def free(self, rows: Rows) -> NDArray[np.int64]:
        """What the rows have of these amounts."""
        free = self._cluster.free[np.ix_(rows, self.columns)]
        if self._by_device:
            # Where devices are replicated, cut or shared by memory, what is free of them depends on who has left.
            devices = self._cluster.devices
            unclear = devices.is_pressed(rows)
            if devices.odd:
                unclear |= np.isin(rows, list(devices.odd))
            if unclear.any():
                free[np.ix_(unclear.nonzero()[0], np.array(self._by_device))] = _ENDLESS
        return free

    def slots(self, rows: Rows) -> NDArray[np.int64]:
        """How many such pods each row could take now, at most."""
        slots: NDArray[np.int64] = (self.free(rows) // self.taken).min(axis=1)
        if self._whole:
            whole = self._cluster.free[rows, facts.GPU_WHOLE] // self._whole
            odd = self._cluster.devices.odd
            if odd:
                whole[np.isin(rows, list(odd))] = _ENDLESS
            slots = np.minimum(slots, whole)
        return np.maximum(slots, 0)
