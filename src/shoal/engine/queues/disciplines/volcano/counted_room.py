"""Counts how many equal pods fit at most while others leave one after the other. Each departure costs little.

The count divides what is free on a node by what one pod takes. It is never too low, so that a trial on the ledger is
needed only where the count suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import floordiv

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.facts import GPU_BEST, GPU_MILLI, GPU_WHOLE, NEVER_LACKING
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.suitability import suits

Rows = NDArray[np.int64]


def counted_need(charge: Charge, width: int) -> Rows:
    """What a pod needs of each column that adds up over the pods of a node."""
    need = np.full(width, NEVER_LACKING, np.int64)
    need[: len(charge.need)] = charge.need
    # How much of a device is free in one piece does not add up; the sum over a node's devices does.
    need[[GPU_WHOLE, GPU_BEST]] = NEVER_LACKING
    need[GPU_MILLI] = charge.gpu_milli or NEVER_LACKING
    return need


class CountedRoom:
    """Room for some pods of each of some requests, each counted as if the others were not there."""

    def __init__(
        self, cluster: Cluster, wanted: Mapping[Charge, int], rows: Rows, row_of: Callable[[PodOfJob], int]
    ) -> None:
        """`rows`: where the pods may go. `row_of`: where a pod that leaves runs."""
        self._row_of = row_of
        by_request = [_EqualPods(cluster, charge, count, rows) for charge, count in wanted.items()]
        # Without a column that adds up there is always room by the count.
        self._counted = [] if cluster.devices.odd else [pods for pods in by_request if len(pods.columns)]

    @property
    def suffices(self) -> bool:
        return all(pods.missing <= 0 for pods in self._counted)

    def leave(self, pods: Iterable[PodOfJob]) -> None:
        for pod in pods:
            row = self._row_of(pod)
            for counted in self._counted:
                counted.change(row, pod.charge, 1)

    def stay(self, pods: Iterable[PodOfJob]) -> None:
        """Take back that these pods leave."""
        for pod in pods:
            row = self._row_of(pod)
            for counted in self._counted:
                counted.change(row, pod.charge, -1)


class _EqualPods:
    """Room for so many pods of one request on the nodes that suit it."""

    def __init__(self, cluster: Cluster, charge: Charge, count: int, rows: Rows) -> None:
        need = counted_need(charge, cluster.width)
        taken = np.zeros(cluster.width, np.int64)
        taken[: len(charge.taken)] = charge.taken
        self.columns = ((need > 0) & (taken >= need)).nonzero()[0]
        self.missing = count
        """How many find no room; negative if more would."""
        self._freed: dict[Charge, list[int]] = {}
        self._need: list[int] = need[self.columns].tolist()
        if not self._need:
            return
        is_suitable = np.zeros(cluster.rows, np.bool_)
        is_suitable[rows] = suits(cluster, charge.ask, rows)
        free = cluster.free[: cluster.rows, self.columns]
        counts = (np.maximum(free, 0) // self._need).min(axis=1)
        self.missing -= int(counts[is_suitable].sum())
        self._counts: list[int] = counts.tolist()
        self._is_suitable: list[bool] = is_suitable.tolist()
        self._free: list[list[int]] = free.tolist()

    def change(self, row: int, charge: Charge, sign: int) -> None:
        """A pod leaves the row, or stays after all."""
        if not self._is_suitable[row]:
            return
        amounts = self._freed.get(charge)
        if amounts is None:
            amounts = self._freed[charge] = charge.taken[self.columns].tolist()
        free = self._free[row]
        for at, amount in enumerate(amounts):
            free[at] += sign * amount
        before = self._counts[row]
        if sign < 0 and not before:
            return
        fits = max(min(map(floordiv, free, self._need)), 0)
        self._counts[row] = fits
        self.missing += before - fits
