"""When schedules are due: known cases, and any schedule against a walk over all minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.controllers.cron_jobs.schedule_times import (
    NeverTwiceError,
    ScheduleTimes,
    find_schedule_time,
    next_wake_s,
)
from shoal.units.schedules import ScheduleError, read_schedule

NEW_YORK = "America/New_York"


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _today(text: str) -> datetime:
    return _utc(f"2026-01-01T{text}:00+00:00")


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        pytest.param(
            "*/15 * * * *", "2026-01-01T00:00:00+00:00", "2026-01-01T00:15:00+00:00", id="never the same time"
        ),
        pytest.param("*/15 * * * *", "2026-01-01T00:14:59+00:00", "2026-01-01T00:15:00+00:00", id="at the full minute"),
        pytest.param(
            "20-35/15 * * * *", "2026-01-01T00:21:00+00:00", "2026-01-01T00:35:00+00:00", id="a stepped range"
        ),
        pytest.param("5/20 * * * *", "2026-01-01T00:26:00+00:00", "2026-01-01T00:45:00+00:00", id="from a value on"),
        pytest.param("0 0 * feb mon", "2026-01-01T00:00:00+00:00", "2026-02-02T00:00:00+00:00", id="names"),
        pytest.param(
            "0 0 13 * FRI", "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00", id="either day suffices"
        ),
        pytest.param("0 0 */13 * MON", "2026-01-02T00:00:00+00:00", "2026-01-05T00:00:00+00:00", id="*/13 is no star"),
        pytest.param("0 0 ? * 1", "2026-01-01T00:00:00+00:00", "2026-01-05T00:00:00+00:00", id="a question mark is"),
        pytest.param("0 0 29 2 *", "2026-01-01T00:00:00+00:00", "2028-02-29T00:00:00+00:00", id="a leap day"),
        pytest.param("@hourly", "2026-01-01T00:00:00+00:00", "2026-01-01T01:00:00+00:00", id="@hourly"),
        pytest.param("@weekly", "2026-01-01T00:00:00+00:00", "2026-01-04T00:00:00+00:00", id="@weekly"),
        pytest.param("@yearly", "2026-01-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00", id="@yearly"),
        pytest.param("@every 1h30m", "2026-01-01T00:00:10+00:00", "2026-01-01T01:30:10+00:00", id="@every"),
        pytest.param("@every .5m1.5s", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:31+00:00", id="@every, in parts"),
    ],
)
def test_a_schedule_is_next_due(schedule: str, after: str, due: str) -> None:
    assert read_schedule(schedule).next(_utc(after)) == _utc(due)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        pytest.param("0 9 * * *", "2026-07-01T00:00:00-04:00", "2026-07-01T09:00:00-04:00", id="by the zone's clock"),
        pytest.param("30 2 8 3 *", "2026-01-01T00:00:00-05:00", "2027-03-08T02:30:00-05:00", id="no left-out time"),
        pytest.param(
            "0 1 * * *", "2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", id="both of a doubled time"
        ),
        pytest.param("0 * * * *", "2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00", id="hours go on"),
    ],
)
def test_a_zone_that_changes_its_clock_is_followed(schedule: str, after: str, due: str) -> None:
    assert read_schedule(schedule, ZoneInfo(NEW_YORK)).next(_utc(after)) == _utc(due)


_UNREADABLE = (
    "", "* * * *", "* * * * * *", "60 * * * *", "5-1 * * * *", "*/0 * * * *", "a * * * *", "@never", "@every x",
    "* * L * *", "* * * * 7", "@every 1.2.3s", "@every .s", "@every 99999999999h", f"@every {'9' * 500}h",
    f"{'9' * 5000} * * * *",
)  # fmt: skip


@pytest.mark.parametrize("schedule", _UNREADABLE)
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(ScheduleError):
        read_schedule(schedule)


def test_a_day_that_never_comes_is_never_due() -> None:
    assert read_schedule("59 23 31 2 *").next(_utc("2026-01-01T00:00:00+00:00")) is None
    with pytest.raises(NeverTwiceError):
        find_schedule_time(
            read_schedule("59 23 31 2 *"), _utc("2026-01-01T00:00:00+00:00"), _utc("2026-02-01T00:00:00+00:00"), None
        )


@st.composite
def _fields(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int], bool]:
    """A field, what it means, and whether it asks for nothing."""
    if draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(["*", "?"])), frozenset(range(low, high + 1)), True
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, 7))
    return f"{first}-{last}/{step}", frozenset(range(first, last + 1, step)), False


@settings(max_examples=examples(30), deadline=None)
@given(
    _fields(0, 59), _fields(0, 23), _fields(1, 31), _fields(0, 6),
    st.sampled_from([NEW_YORK, "UTC", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Havana"]),
    st.integers(0, 365 * 24 * 60),
)  # fmt: skip
def test_the_next_time_is_what_a_walk_over_all_minutes_finds(
    minute: tuple[str, frozenset[int], bool],
    hour: tuple[str, frozenset[int], bool],
    day: tuple[str, frozenset[int], bool],
    weekday: tuple[str, frozenset[int], bool],
    zone: str,
    start: int,
) -> None:
    schedule = read_schedule(f"{minute[0]} {hour[0]} {day[0]} * {weekday[0]}", ZoneInfo(zone))
    after = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=start)
    found = schedule.next(after)
    time, expected = after, None
    for _ in range(3 * 24 * 60):
        time += timedelta(minutes=1)
        here = time.astimezone(ZoneInfo(zone))
        by_date, by_week = here.day in day[1], here.isoweekday() % 7 in weekday[1]
        is_day = (by_date and by_week) if day[2] or weekday[2] else (by_date or by_week)
        if is_day and here.hour in hour[1] and here.minute in minute[1]:
            expected = time
            break
    if expected is not None:
        assert found == expected
    else:
        assert found is None or found > time


@pytest.mark.parametrize(
    ("schedule", "since", "now", "within_s", "due"),
    [
        pytest.param("0 * * * *", "00:00", "00:59", None, ScheduleTimes(), id="nothing before its time"),
        pytest.param("0 * * * *", "00:00", "01:00", None, ScheduleTimes(_today("01:00")), id="the one start"),
        pytest.param("0 * * * *", "00:00", "05:30", None, ScheduleTimes(_today("05:00")), id="of many the last"),
        pytest.param("0 * * * *", "00:00", "05:30", 600, ScheduleTimes(), id="none that is too late"),
        pytest.param("* * * * *", "00:00", "01:40", None, ScheduleTimes(_today("01:40")), id="100 are not many"),
        pytest.param("* * * * *", "00:00", "01:41", None, ScheduleTimes(_today("01:41"), True), id="101 are many"),
        pytest.param("* 9 * * *", "00:00", "23:00", None, ScheduleTimes(_today("09:59"), True), id="an uneven one"),
    ],
)  # fmt: skip
def test_of_missed_starts_the_latest_is_due(
    schedule: str, since: str, now: str, within_s: int | None, due: ScheduleTimes
) -> None:
    assert find_schedule_time(read_schedule(schedule), _today(since), _today(now), within_s) == due


@settings(max_examples=examples(30), deadline=None)
@given(_fields(0, 59), _fields(0, 23), st.integers(0, 60 * 24 * 4), st.integers(0, 59))
def test_the_start_that_is_due_is_the_last_one_of_all(
    minute: tuple[str, frozenset[int], bool], hour: tuple[str, frozenset[int], bool], gone: int, second: int
) -> None:
    schedule = read_schedule(f"{minute[0]} {hour[0]} * * *")
    since = datetime(2026, 1, 1, 7, 13, tzinfo=UTC)
    now = since + timedelta(minutes=gone, seconds=second)
    last, time = None, schedule.next(since)
    while time is not None and time <= now:
        last, time = time, schedule.next(time)
    assert find_schedule_time(schedule, since, now, None).time == last
    assert time is not None
    assert next_wake_s(schedule, since, now) == pytest.approx((time - now).total_seconds() + 0.1)
