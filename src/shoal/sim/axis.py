"""Puts a run on the axis of the FGD evaluation: GPU load arrived so far, in whole percent of the fleet.

The rules (the paper's analysis): an arrival belongs to the bin of its cumulated request, rounded half to even; a
bin's allocation is the mean over its arrivals of the allocation rounded to two digits; a bin without arrivals takes
those of the bins one below to one above; means are rounded to two digits. Refused pods have arrived too.

Guarantees: equal to the published table bin by bin for equal runs. Where the paper is silent (a small fleet leaves gaps
wider than three bins) the last bin before the gap still describes the fleet; a load never reached is absent.

Rejected: interpolating at exact loads, which is nicer and not comparable.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

MARKS = (80, 90, 95, 100, 110, 120, 130)
_LAST_BIN = 1000


class Curves(msgspec.Struct, frozen=True):
    """Per bin, in percent: GPU allocated of the fleet, idle GPU no typical pod can use of the fleet and of all idle."""

    alloc: dict[int, float]
    frag_amount: dict[int, float]
    frag_ratio: dict[int, float]

    def at(self, *marks: int) -> Curves:
        """The same curves at these loads only; a load the run did not reach is left out."""
        return Curves(
            alloc={mark: self.alloc[mark] for mark in marks if mark in self.alloc},
            frag_amount={mark: self.frag_amount[mark] for mark in marks if mark in self.frag_amount},
            frag_ratio={mark: self.frag_ratio[mark] for mark in marks if mark in self.frag_ratio},
        )


def curves(
    arrived_milli: Sequence[int] | NDArray[np.int64],
    allocated_milli: Sequence[int] | NDArray[np.int64],
    frag_milli: Sequence[float] | NDArray[np.float64],
    total_gpu_milli: int,
) -> Curves:
    """The three curves of one run from what was true after each arrival."""
    gpus = total_gpu_milli / 1000
    # Two divisions, in this order, as in the published analysis: one division rounds differently in the last bit.
    bins = np.rint(np.asarray(arrived_milli, dtype=np.float64) / gpus / 10).astype(np.int64)
    allocated = np.asarray(allocated_milli, dtype=np.float64)
    frag = np.asarray(frag_milli, dtype=np.float64)
    # round() is correct to the decimal; np.round multiplies first and differs on ties.
    alloc = np.array([round(value, 2) for value in (allocated / gpus / 10).tolist()], dtype=np.float64)
    idle = total_gpu_milli - allocated
    ratio = np.divide(100 * frag, idle, out=np.zeros_like(frag), where=idle > 0)
    windows = _windows(bins)
    return Curves(
        alloc=_means(alloc, windows),
        frag_amount=_means(frag, windows, 10 * gpus),
        frag_ratio=_means(ratio, windows),
    )


def _windows(bins: NDArray[np.int64]) -> dict[int, tuple[int, int]]:
    """Per bin the range of arrivals that speak for it; bins never fall, because load only arrives."""
    if not len(bins):
        return {}
    marks = np.arange(min(int(bins[-1]) + 1, _LAST_BIN) + 1)
    first = np.searchsorted(bins, marks, side="left")
    last = np.searchsorted(bins, marks, side="right")
    near_first = np.searchsorted(bins, marks - 1, side="left")
    near_last = np.searchsorted(bins, marks + 1, side="right")
    windows: dict[int, tuple[int, int]] = {}
    for mark in marks.tolist():
        if last[mark] > first[mark]:
            windows[mark] = (int(first[mark]), int(last[mark]))
        elif near_last[mark] > near_first[mark]:
            windows[mark] = (int(near_first[mark]), int(near_last[mark]))
        elif mark - 1 in windows:
            windows[mark] = windows[mark - 1]
    return windows


def _means(
    values: NDArray[np.float64], windows: dict[int, tuple[int, int]], per_percent: float = 1.0
) -> dict[int, float]:
    return {mark: float(np.round(values[a:b].mean() / per_percent, 2)) for mark, (a, b) in windows.items()}
