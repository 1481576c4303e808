"""Feeds arrivals to a packing run in order and reads its curves off afterwards.

Guarantees: the arrivals go in one by one and in order; `on_progress` gets the number of arrivals from time to time, and
cannot change what happens. Time is not measured here: callers that show seconds have the clock.

Rejected: a generator that yields per arrival. It costs more than some placements do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from shoal.sim.axis import Curves, curves

_STRIDE = 250


class Run(Protocol):
    """What a run of one policy shows of itself; one entry per arrival in each of the three series."""

    @property
    def arrived_milli(self) -> Sequence[int]: ...
    @property
    def allocated_milli(self) -> Sequence[int]: ...
    @property
    def frag_milli(self) -> Sequence[float]: ...
    @property
    def total_gpu_milli(self) -> int: ...
    def arrive(self, pod_row: int) -> bool: ...


def replay(run: Run, pod_rows: Sequence[int], on_progress: Callable[[int], None] | None = None) -> None:
    for start in range(0, len(pod_rows), _STRIDE):
        stop = min(start + _STRIDE, len(pod_rows))
        for row in pod_rows[start:stop]:
            run.arrive(row)
        if on_progress:
            on_progress(stop)


def curves_of(run: Run) -> Curves:
    return curves(run.arrived_milli, run.allocated_milli, run.frag_milli, run.total_gpu_milli)


def reach_percent(run: Run) -> int:
    """The load at the end of the run, in whole percent of the fleet."""
    return round(100 * run.arrived_milli[-1] / run.total_gpu_milli) if run.arrived_milli else 0
