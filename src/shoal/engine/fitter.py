"""Tries to place a pod or a gang on the ledger; every step of a cycle uses it.

A success stays on the ledger until the caller rolls it back; a failure leaves no trace.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.pods import Waiting
from shoal.engine.seeded_number import seeded_number

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
