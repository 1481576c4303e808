"""Predicts the demand for GPUs of each hour of the week from recorded demand, and measures the error of this.

The prediction of an hour is a high quantile of the same hour of earlier weeks. Its error is measured walk-forward: each
recorded hour is predicted from the weeks before it alone. Hours that were not recorded are unknown, and never without
demand. Rejected: models of trend and season, which need more weeks than a cluster has, and cannot be checked by eye.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

HOURS: Final = 168
"""Of a week, from Monday, 0 h."""
LEAST_WEEKS: Final = 2
MOST_WEEKS: Final = 8
"""Older weeks say little of the present demand."""
USUAL_QUANTILE: Final = 0.9


class DemandHour(msgspec.Struct, frozen=True):
    hour: int
    """Of the week, in the time zone of the forecast."""
    gpus: float | None
    """The most that was held and waited for at one time. None: it was not recorded."""


class ForecastError(msgspec.Struct, frozen=True, rename="camel"):
    hours: int
    """That were predicted and recorded."""
    mean_gpus: float
    """The mean distance between prediction and demand."""
    short_share: float
    """The part of these hours in which the demand was above the prediction."""
    mean_short_gpus: float
    """How many GPUs were missing, as a mean of all these hours."""
    mean_over_gpus: float
    """How many GPUs more than the demand were predicted, as a mean of all these hours."""


class DemandForecast(msgspec.Struct, frozen=True, rename="camel"):
    gpus: tuple[float | None, ...]
    """By hour of the week. None: this hour was recorded in too few weeks."""
    weeks: int
    """That the predictions are made of."""
    error: ForecastError


def forecast_of(hours: Sequence[DemandHour], quantile: float = USUAL_QUANTILE) -> DemandForecast | None:
    """`hours`: without a break, the newest last. None: fewer than two weeks were recorded."""
    known = sum(each.gpus is not None for each in hours)
    if known < LEAST_WEEKS * HOURS:
        return None
    seen: list[list[float]] = [[] for _ in range(HOURS)]
    errors: list[float] = []
    for each in hours:
        if each.gpus is None:
            continue
        earlier = seen[each.hour]
        if earlier:
            errors.append(_quantile(earlier, quantile) - each.gpus)
        earlier.append(each.gpus)
        del earlier[:-MOST_WEEKS]
    gpus = tuple(_quantile(each, quantile) if len(each) >= LEAST_WEEKS else None for each in seen)
    return DemandForecast(gpus, min(known // HOURS, MOST_WEEKS), _error(errors))


def _quantile(values: Sequence[float], quantile: float) -> float:
    """The smallest of them that is at least as large as this part of them."""
    ordered = sorted(values)
    return ordered[max(math.ceil(quantile * len(ordered)), 1) - 1]


def _error(errors: Sequence[float]) -> ForecastError:
    count = max(len(errors), 1)
    short = [-each for each in errors if each < 0]
    over = [each for each in errors if each > 0]
    return ForecastError(
        len(errors), (sum(short) + sum(over)) / count, len(short) / count, sum(short) / count, sum(over) / count
    )
