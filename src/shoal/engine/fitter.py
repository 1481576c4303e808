"""Tries to place a pod or a gang on the ledger; every step of a cycle uses it.

A success stays on the ledger until the caller rolls it back; a failure leaves no trace.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.pods import Waiting

Rows = NDArray[np.int64]


class Fitter:
    """Tries placements on one ledger."""

    __slots__ = ("_at_random", "cluster", "ledger", "placement", "seed")

    def __init__(self, placement: Placement, ledger: Ledger, seed: int) -> None:
        self.cluster: Cluster = placement.cluster
        self.placement = placement
        self.ledger = ledger
        self.seed = seed
        self._at_random = placement.at_random

    def pod(self, key: str, within: Rows | None = None) -> bool:
        """Place a waiting pod on the best row, or on the best of some rows."""
        waiting = self.cluster.pending[key]
        chance = seeded_number(self.seed, key) if self._at_random else 0
        chosen = self._kept(waiting, chance) if waiting.nominated and within is None else None
        if chosen is None:
            chosen = self.placement.choose(waiting.charge, chance, waiting.who, within)
            if chosen is None:
                return False
        row, grant = chosen
        self.ledger.place(key, row, grant)
        return True

    def _kept(self, waiting: Waiting, chance: int) -> tuple[int, DeviceGrant | None] | None:
        """Place the pod on the node of its nomination; other nodes are tried only if it does not fit there."""
        row = self.cluster.row_of.get(waiting.nominated)
        return None if row is None else self.placement.choose(waiting.charge, chance, waiting.who, np.array([row]))


_MASK = (1 << 64) - 1


def seeded_number(seed: int, name: str) -> int:
    """A number of 62 bits (splitmix64's finaliser over seed and name)."""
    x = (seed * 0x9E3779B97F4A7C15 + crc32(name.encode()) * 0xD1B54A32D192ED03 + len(name)) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)) >> 2
