"""Reads the values of a long window with those of its last hours, which are in no mean yet.

Means are made once an hour is over. For sums and means of a window the values would have unequal weights, so only
drawings over time use this.
"""

from __future__ import annotations

import numpy as np

from shoal.store.history.sample_reader import SampleReader, Series
from shoal.store.history.samples import MINUTE_MS
from shoal.units.calendar_windows import HOUR_MS

_RAW_MS, _LAST_MS = 6 * HOUR_MS, 3 * HOUR_MS
_FIVE_MS, _FIVE = 7 * 24 * HOUR_MS, 5 * MINUTE_MS


def recent_series(samples: SampleReader, metric: str, start_ms: int, end_ms: int) -> Series:
    found = samples.series(metric, start_ms, end_ms)
    if end_ms - start_ms <= _RAW_MS:
        return found
    step = _FIVE if end_ms - start_ms <= _FIVE_MS else HOUR_MS
    known_ms = int(found.times_ms[-1]) + step if len(found.times_ms) else start_ms
    begin = max(known_ms, end_ms - _LAST_MS)
    return _joined(found, samples.series(metric, begin, end_ms)) if begin < end_ms else found


def _joined(first: Series, last: Series) -> Series:
    """The times of `last` are later."""
    devices = sorted({*first.devices, *last.devices})
    times = np.concatenate([first.times_ms, last.times_ms])
    values = np.full((len(devices), len(times)), np.nan, np.float32)
    row_of = {name: at for at, name in enumerate(devices)}
    begin = 0
    for part in (first, last):
        rows = [row_of[name] for name in part.devices]
        values[rows, begin : begin + len(part.times_ms)] = part.values
        begin += len(part.times_ms)
    return Series(devices, times, values)
