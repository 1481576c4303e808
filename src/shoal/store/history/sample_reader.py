"""The port for reading samples of devices: the history's own, or those of a Prometheus server.

Both give means of intervals that belong to no gap: where nothing was measured there is no value, and no use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.cost.records import Use
from shoal.store.history.sample_blocks import Values


class Series(NamedTuple):
    devices: list[str]
    times_ms: NDArray[np.int64]
    values: Values


class SampleReader(Protocol):
    def series(self, metric: str, start_ms: int, end_ms: int) -> Series:
        """Values of all devices, in the resolution that fits the length of the window."""
        ...

    def uses(self, start_ms: int, end_ms: int, days: Sequence[int] = ()) -> dict[int, list[Use]]:
        """By `use_key` of the holding, divided at `days`."""
        ...

    def power(self, start_ms: int, end_ms: int) -> dict[str, float]:
        """The mean power of each device in watts."""
        ...

    def notes(self) -> Sequence[str]:
        """What is missing in the answers so far, and why."""
        ...


def means_of_devices(series: Series) -> dict[str, float]:
    known = ~np.isnan(series.values)
    counts = known.sum(axis=1)
    sums = np.where(known, series.values, 0).sum(axis=1, dtype=np.float64)
    return {name: sums[at] / counts[at] for at, name in enumerate(series.devices) if counts[at]}
