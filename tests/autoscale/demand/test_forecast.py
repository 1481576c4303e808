"""The demand of each hour of the week is predicted from earlier weeks, with the error that this had."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.autoscale.demand.forecast import HOURS, DemandHour, forecast_of


def weeks(*levels: Iterable[float | None]) -> list[DemandHour]:
    """Each with the demand of its 168 hours."""
    return [DemandHour(hour, gpus) for week in levels for hour, gpus in enumerate(week)]


def office(most: float) -> list[float]:
    return [most if 8 <= hour % 24 < 18 and hour < 120 else 1.0 for hour in range(HOURS)]


def test_fewer_than_two_recorded_weeks_give_no_forecast() -> None:
    assert forecast_of(weeks(office(8))) is None
    assert forecast_of(weeks(office(8), [None, *office(8)[1:]])) is None
    assert forecast_of(weeks(office(8), office(8))) is not None
    assert forecast_of([]) is None


def test_weeks_that_repeat_are_predicted_without_error() -> None:
    found = forecast_of(weeks(*[office(8)] * 4))
    assert found is not None
    assert found.gpus == tuple(office(8))
    assert found.weeks == 4
    assert (found.error.hours, found.error.mean_gpus, found.error.short_share) == (3 * HOURS, 0.0, 0.0)


def test_no_more_weeks_are_named_than_are_used() -> None:
    found = forecast_of(weeks(*[office(8)] * 9))
    assert found is not None
    assert found.weeks == 8


def test_the_error_of_an_hour_is_that_of_a_prediction_from_earlier_weeks_alone() -> None:
    found = forecast_of(weeks([4.0] * HOURS, [6.0] * HOURS, [2.0] * HOURS))
    assert found is not None
    # 4 for 6, then 6 for 2.
    assert found.error.mean_gpus == 3.0
    assert (found.error.short_share, found.error.mean_short_gpus, found.error.mean_over_gpus) == (0.5, 1.0, 2.0)


def test_one_week_out_of_the_ordinary_does_not_decide_a_median() -> None:
    given = weeks([4.0] * HOURS, [4.0] * HOURS, [40.0] * HOURS, [4.0] * HOURS, [4.0] * HOURS)
    median, high = forecast_of(given, 0.5), forecast_of(given, 0.9)
    assert median is not None
    assert high is not None
    assert (median.gpus[0], high.gpus[0]) == (4.0, 40.0)


def test_hours_that_were_not_recorded_are_unknown() -> None:
    night = [None if hour == 3 else 2.0 for hour in range(HOURS)]
    found = forecast_of(weeks(night, night, [2.0] * HOURS, night))
    assert found is not None
    assert (found.gpus[3], found.gpus[4]) == (None, 2.0)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.floats(0, 64), min_size=3, max_size=6), st.sampled_from([0.5, 0.8, 0.9, 1.0]))
def test_a_prediction_is_a_demand_that_occurred_and_high_quantiles_are_rarely_short(
    levels: list[float], quantile: float
) -> None:
    found = forecast_of(weeks(*[[level] * HOURS for level in levels]), quantile)
    assert found is not None
    assert found.gpus[0] in levels
    if quantile == 1.0:
        assert found.gpus[0] == max(levels)
    error = found.error
    assert error.mean_gpus == pytest.approx(error.mean_short_gpus + error.mean_over_gpus)
