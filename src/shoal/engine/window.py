"""The rows a rule is asked about: a few changed rows in the steady state, all rows the first time.

Rules see a window, never the whole cluster. Each property gathers anew, so a rule reads it once into a name; keeping
the result would cost more than the one rule in fifty that reads it twice saves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster


class Window:
    """A view of some rows. What it hands out is a copy that the rule may overwrite, `rows` and `free` excepted."""

    __slots__ = ("_cluster", "free", "rows")

    def __init__(self, cluster: Cluster, rows: NDArray[np.int64], free: NDArray[np.int64]) -> None:
        self._cluster = cluster
        self.rows = rows
        self.free = free
        """The fused records of the rows (see `facts`)."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> NDArray[np.int64]:
        """What the nodes have in all, laid out as `free`."""
        return self._cluster.total.take(self.rows, axis=0)

    @property
    def compute(self) -> NDArray[np.int32]:
        """Compute left per device slot, one line per row."""
        return self._cluster.devices.compute.take(self.rows, axis=0)

    @property
    def hundredths(self) -> NDArray[np.int32]:
        """As `compute`, in whole hundredths and never below zero: indices into tables over piece sizes."""
        left = self._cluster.devices.compute.take(self.rows, axis=0)
        np.maximum(left, 0, out=left)
        left //= 10
        return left

    @property
    def device_count(self) -> NDArray[np.int32]:
        return self._cluster.devices.count.take(self.rows)


def window_of(cluster: Cluster, rows: NDArray[np.int64]) -> Window:
    return Window(cluster, rows, cluster.free.take(rows, axis=0))
