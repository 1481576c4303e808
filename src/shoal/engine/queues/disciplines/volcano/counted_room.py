"""Counts how many equal pods fit at most while others leave one after the other. Each departure costs little.

The count divides what is free on a node by what one pod takes. It is never too low, so that a trial on the ledger is
needed only where the count suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
    """Room for so many equal pods on the nodes that suit them."""

    def __init__(self, cluster: Cluster, charge: Charge, count: int, row_of: Callable[[PodOfJob], int]) -> None:
        """`row_of`: where a pod that leaves runs."""
        self._missing = count
        """How many find no room; negative if more would."""
        self._row_of = row_of
        self._freed: dict[Charge, list[int]] = {}
        need = counted_need(charge, cluster.width)
        taken = np.zeros(cluster.width, np.int64)
        taken[: len(charge.taken)] = charge.taken
        self._columns = ((need > 0) & (taken >= need)).nonzero()[0]
        self._is_bounded = bool(len(self._columns)) and not cluster.devices.odd
        """Without a column that adds up there is always room by the count."""
        if not self._is_bounded:
            return
        self._need: list[int] = need[self._columns].tolist()
        rows = cluster.all_rows()
        is_suitable = suits(cluster, charge.ask, rows)
        free = cluster.free[: cluster.rows, self._columns]
        counts = (np.maximum(free, 0) // self._need).min(axis=1)
        self._missing -= int(counts[is_suitable].sum())
        self._counts: list[int] = counts.tolist()
        self._suitable: list[bool] = is_suitable.tolist()
        self._free: list[list[int]] = free.tolist()

    @property
    def suffices(self) -> bool:
        return self._missing <= 0 or not self._is_bounded

    def leave(self, pods: Iterable[PodOfJob]) -> None:
        self._change(pods, 1)

    def stay(self, pods: Iterable[PodOfJob]) -> None:
        """Take back that these pods leave."""
        self._change(pods, -1)

    def _change(self, pods: Iterable[PodOfJob], sign: int) -> None:
        if not self._is_bounded:
            return
        for pod in pods:
            row = self._row_of(pod)
            if not self._suitable[row]:
                continue
            amounts = self._freed.get(pod.charge)
            if amounts is None:
                amounts = self._freed[pod.charge] = pod.charge.taken[self._columns].tolist()
            free = self._free[row]
            count = self._missing + self._counts[row]
            for at, amount in enumerate(amounts):
                free[at] += sign * amount
            fits = max(min([have // each for have, each in zip(free, self._need, strict=True)]), 0)
            self._counts[row] = fits
            self._missing = count - fits
