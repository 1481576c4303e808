"""Provides the rows that a rule is evaluated on: a few changed rows in the steady state, all rows the first time.

Rules see a window, never the whole cluster. Each property gathers anew, so a rule reads it once into a name; keeping
the result would cost more than the one rule in fifty that reads it twice saves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster


class Window:
    """A view of some rows. What it hands out is a copy that the rule may overwrite, `rows` excepted."""

    __slots__ = ("_cluster", "rows")

    def __init__(self, cluster: Cluster, rows: NDArray[np.int64]) -> None:
        self._cluster = cluster
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def free(self) -> NDArray[np.int64]:
        """The fused records of the rows (see `facts`)."""
        return self._cluster.free.take(self.rows, axis=0)

    @property
    def total(self) -> NDArray[np.int64]:
        """What the nodes have in all, laid out as `free`."""
        return self._cluster.total.take(self.rows, axis=0)

    @property
    def compute(self) -> NDArray[np.int32]:
        """Compute that can be had per device slot, one line per row."""
        return self._cluster.devices.free_rows(self.rows)

    @property
    def device_count(self) -> NDArray[np.int32]:
        return self._cluster.devices.count.take(self.rows)
