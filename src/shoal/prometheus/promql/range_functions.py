"""Functions over the samples of a range, by Prometheus' rules: rates are extrapolated to the ends of the range, and not
below zero for counters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class RangeSamples(NamedTuple):
    times: Sequence[int]
    values: Sequence[float]
    start_ms: int
    end_ms: int


_NEAR = 1.1
"""Parts of the mean distance of samples within which a series is taken to reach the end of the range."""


def rate(samples: RangeSamples) -> float | None:
    return _extrapolated(samples, is_counter=True, is_rate=True)


def increase(samples: RangeSamples) -> float | None:
    return _extrapolated(samples, is_counter=True, is_rate=False)


def delta(samples: RangeSamples) -> float | None:
    return _extrapolated(samples, is_counter=False, is_rate=False)


def irate(samples: RangeSamples) -> float | None:
    if len(samples.times) < 2:
        return None
    before, last = samples.values[-2:]
    rise = last - before if last >= before else last
    return rise * 1000 / (samples.times[-1] - samples.times[-2])


def deriv(samples: RangeSamples) -> float | None:
    """The slope per second by least squares."""
    if len(samples.times) < 2:
        return None
    base = samples.times[0]
    seconds = [(time - base) / 1000 for time in samples.times]
    mean_time, mean_value = _mean(seconds), _mean(samples.values)
    spread = math.fsum((time - mean_time) ** 2 for time in seconds)
    both = math.fsum(
        (time - mean_time) * (value - mean_value) for time, value in zip(seconds, samples.values, strict=True)
    )
    return both / spread if spread else 0.0


def changes(samples: RangeSamples) -> float | None:
    values = samples.values
    return float(sum(1 for at in range(1, len(values)) if values[at] != values[at - 1])) if values else None


def resets(samples: RangeSamples) -> float | None:
    values = samples.values
    return float(sum(1 for at in range(1, len(values)) if values[at] < values[at - 1])) if values else None


def _extrapolated(samples: RangeSamples, *, is_counter: bool, is_rate: bool) -> float | None:
    times, values = samples.times, samples.values
    if len(times) < 2:
        return None
    change = values[-1] - values[0]
    if is_counter:
        change += sum(values[at - 1] for at in range(1, len(values)) if values[at] < values[at - 1])
    length = (times[-1] - times[0]) / 1000
    step = length / (len(times) - 1)
    before, after = (times[0] - samples.start_ms) / 1000, (samples.end_ms - times[-1]) / 1000
    if before >= step * _NEAR:
        before = step / 2
    if is_counter and change > 0 and values[0] >= 0:
        before = min(before, length * values[0] / change)
    if after >= step * _NEAR:
        after = step / 2
    found = change * (length + before + after) / length
    return found / ((samples.end_ms - samples.start_ms) / 1000) if is_rate else found


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


RangeFunction = Callable[[RangeSamples], float | None]
RANGE_FUNCTIONS: Mapping[str, RangeFunction] = {
    "rate": rate,
    "irate": irate,
    "increase": increase,
    "delta": delta,
    "deriv": deriv,
    "changes": changes,
    "resets": resets,
    "avg_over_time": lambda one: _mean(one.values) if one.values else None,
    "min_over_time": lambda one: min(one.values, default=None),
    "max_over_time": lambda one: max(one.values, default=None),
    "sum_over_time": lambda one: math.fsum(one.values) if one.values else None,
    "count_over_time": lambda one: float(len(one.values)) if one.values else None,
    "last_over_time": lambda one: one.values[-1] if one.values else None,
    "present_over_time": lambda one: 1.0 if one.values else None,
    "stdvar_over_time": lambda one: _variance(one.values) if one.values else None,
    "stddev_over_time": lambda one: math.sqrt(_variance(one.values)) if one.values else None,
}
