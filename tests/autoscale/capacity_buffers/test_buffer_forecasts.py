"""A CapacityBuffer with a forecast keeps room for the predicted demand beyond the present one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.autoscale.capacity_buffers.buffer import buffer_of, buffer_pods
from shoal.autoscale.capacity_buffers.forecast_text import FORECAST, forecast_text, forecast_words, read_forecast
from shoal.autoscale.demand.forecast import HOURS, DemandForecast, ForecastError
from shoal.units.errors import UserError, Where

FRIDAY_NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOUR = 4 * 24 + 12
TEMPLATE: dict[str, Any] = {
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
}
ERROR = ForecastError(168, 1.25, 0.1, 0.25, 1.0)
UNTIL_MS = round((FRIDAY_NOON - timedelta(hours=1)).timestamp() * 1000)


def text(gpus: dict[int, float | None], time_zone: str = "UTC") -> str:
    found = DemandForecast(tuple(gpus.get(hour, 0.0) for hour in range(HOURS)), 3, ERROR)
    return forecast_text(found, UNTIL_MS, time_zone)


def count(
    forecast: str, demand: float = 0.0, now: datetime = FRIDAY_NOON, template: Any = TEMPLATE, **spec: Any
) -> int:
    meta = {"namespace": "team", "name": "warm", "annotations": {FORECAST: forecast}}
    raw = {"metadata": meta, "spec": {"podTemplateRef": {"name": "worker"}, **(spec or {"replicas": 9})}}
    return len(buffer_pods(buffer_of(raw), template, now, demand))


def test_room_is_kept_for_the_predicted_demand_beyond_the_present_one() -> None:
    assert count(text({HOUR: 7.0})) == 4
    assert count(text({HOUR: 7.0}), demand=4) == 2
    assert count(text({HOUR: 7.0}), demand=8) == 0
    assert count(text({HOUR: 0.0})) == 0


def test_replicas_and_limits_bound_the_room() -> None:
    assert count(text({HOUR: 70.0})) == 9
    assert count(text({HOUR: 70.0}), limits={"nvidia.com/gpu": "6"}) == 3


def test_nodes_are_requested_before_the_hour_begins() -> None:
    next_hour = text({HOUR + 1: 8.0})
    assert count(next_hour) == 0
    assert count(next_hour, now=FRIDAY_NOON + timedelta(minutes=46)) == 4


def test_the_hours_are_those_of_the_time_zone() -> None:
    assert count(text({HOUR + 9: 2.0}, "Asia/Tokyo")) == 1
    assert count(text({HOUR: 2.0}, "Asia/Tokyo")) == 0


def test_an_hour_with_too_few_weeks_keeps_no_room() -> None:
    assert count(text({HOUR: None})) == 0


@pytest.mark.parametrize(
    ("forecast", "message"),
    [
        ("{", "the forecast cannot be read"),
        (json.dumps({"gpus": [1.0], "weeks": 2, "until": "2026-11-27T00:00:00Z"}), "1 hours instead of 168"),
        (json.dumps({"gpus": [1.0] * HOURS, "weeks": 2, "until": "yesterday"}), "the forecast cannot be read"),
        (json.dumps({"gpus": [1.0] * HOURS, "weeks": 2, "until": "2026-11-01T00:00:00Z"}), "ended at 2026-11-01"),
        (json.dumps({"gpus": [1.0] * HOURS, "weeks": 2, "until": "2026-11-27"}), "2026-11-27 has no time zone"),
        (json.dumps({"gpus": [1.0] * HOURS, "weeks": 2, "until": "9999-12-31T23:59:59-23:00"}), "in the future"),
        (
            json.dumps({"gpus": [1.0] * HOURS, "weeks": 2, "until": "2026-11-27T00:00:00Z", "timeZone": "Mars"}),
            "Mars",
        ),
    ],
)
def test_a_forecast_that_is_not_certain_keeps_no_room_and_says_why(forecast: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        count(forecast)


def test_clocks_that_differ_by_minutes_do_not_make_a_forecast_invalid() -> None:
    assert count(text({HOUR - 2: 7.0}), now=datetime.fromtimestamp(UNTIL_MS / 1000 - 60, UTC)) == 4
    with pytest.raises(UserError, match="in the future"):
        count(text({HOUR - 2: 7.0}), now=datetime.fromtimestamp(UNTIL_MS / 1000 - 3600, UTC))


def test_pods_without_gpus_cannot_follow_a_forecast_of_gpus() -> None:
    with pytest.raises(UserError, match="ask for no GPUs"):
        count(text({}), template={"spec": {"containers": [{"name": "main"}]}})


def test_the_error_is_said_with_the_prediction() -> None:
    found = read_forecast(text({HOUR: 7.0}), Where())
    assert forecast_words(found, FRIDAY_NOON) == (
        "7 GPUs are predicted for this hour from 3 weeks; mean error 1.25 GPUs, demand was higher in 10% of hours"
    )
