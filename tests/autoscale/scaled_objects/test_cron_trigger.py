"""The window of a cron trigger, minute by minute, in zones whose clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.autoscale.scaled_objects.cron import (
    CronError,
    CronWindow,
    cron_activity,
    cron_metric_name,
    never_due,
    read_cron,
)

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]


def window(start: str, end: str, zone: str = "Europe/Berlin") -> CronWindow:
    return read_cron({"timezone": zone, "start": start, "end": end, "desiredReplicas": "3"})


def literally(one: CronWindow, now: datetime) -> bool:
    """Walk forward minute by minute until the clock of the zone shows the start or the end."""
    zone = ZoneInfo(one.timezone)
    start, end = ([int(part) for part in text.split()[:2]] for text in (one.start, one.end))
    time = now.replace(second=0, microsecond=0)
    for _ in range(3 * 24 * 60):
        time += timedelta(minutes=1)
        here = time.astimezone(zone)
        if [here.minute, here.hour] == end:
            return True
        if [here.minute, here.hour] == start:
            return False
    raise AssertionError("neither comes within three days")


@settings(max_examples=examples(60))
@given(
    st.sampled_from(ZONES),
    st.tuples(st.integers(0, 59), st.integers(0, 23)),
    st.tuples(st.integers(0, 59), st.integers(0, 23)),
    st.sampled_from(["2026-03-28", "2026-10-24", "2026-03-07", "2026-10-31", "2026-10-03", "2026-06-01"]),
    st.integers(0, 2 * 24 * 3600),
)
def test_a_window_is_open_if_its_end_is_the_next_to_come(
    zone: str, start: tuple[int, int], end: tuple[int, int], day: str, offset_s: int
) -> None:
    if start == end:
        return
    one = window(f"{start[0]} {start[1]} * * *", f"{end[0]} {end[1]} * * *", zone)
    now = datetime.fromisoformat(f"{day}T00:00:00+00:00") + timedelta(seconds=offset_s)
    found = cron_activity(one, now)
    assert found.is_active == literally(one, now)
    assert found.value == (3 if found.is_active else 0)


CHANGES = [
    ("a start that the zone skips keeps the window open", "30 2 * * *", "0 4 * * *", "2026-03-28T05:00:00", True),
    ("the day before it opens", "30 2 * * *", "0 4 * * *", "2026-03-28T02:30:00", True),
    ("in summer the window is an hour earlier in UTC", "0 9 * * *", "0 17 * * *", "2026-07-01T07:30:00", True),
    ("in winter it is not", "0 9 * * *", "0 17 * * *", "2026-12-01T07:30:00", False),
    ("the end itself is outside", "0 9 * * *", "0 17 * * *", "2026-12-01T16:00:00", False),
    ("the start itself is inside", "0 9 * * *", "0 17 * * *", "2026-12-01T08:00:00", True),
    ("a start that never comes opens nothing", "0 0 30 2 *", "0 17 * * *", "2026-12-01T08:00:00", False),
]


@pytest.mark.parametrize(("_name", "start", "end", "at", "wanted"), CHANGES, ids=[row[0] for row in CHANGES])
def test_windows_follow_the_clock_of_their_zone(_name: str, start: str, end: str, at: str, wanted: bool) -> None:
    assert cron_activity(window(start, end), datetime.fromisoformat(at).replace(tzinfo=UTC)).is_active is wanted


def test_a_schedule_that_never_comes_is_named() -> None:
    now = datetime(2026, 12, 1, tzinfo=UTC)
    assert never_due(window("0 0 30 2 *", "0 17 * * *"), now) == "start"
    assert never_due(window("0 9 * * *", "0 17 * * *"), now) == ""


INVALID = [
    ({"start": ""}, 'missing required parameter "start" in [triggerMetadata]'),
    ({"timezone": ""}, 'missing required parameter "timezone" in [triggerMetadata]'),
    ({"end": "61 * * * *"}, "error parsing end schedule: no range from 0 to 59: 61"),
    ({"start": "@daily"}, "error parsing start schedule: parser does not accept descriptors: @daily"),
    ({"start": "0 9 * *"}, "error parsing start schedule: expected exactly 5 fields, found 4: [0 9 * *]"),
    ({"end": "0 9 * * *"}, "start and end can not have exactly same time input"),
    ({"desiredReplicas": "1_0"}, "desiredReplicas '1_0' is not a whole number"),
    ({"desiredReplicas": "0"}, "no desiredReplicas specified"),
]


@pytest.mark.parametrize(("changed", "message"), INVALID, ids=[row[1] for row in INVALID])
def test_invalid_metadata_is_refused(changed: dict[str, str], message: str) -> None:
    usual = {"timezone": "UTC", "start": "0 9 * * *", "end": "0 17 * * *", "desiredReplicas": "3"}
    with pytest.raises(CronError) as refusal:
        read_cron(usual | changed)
    assert str(refusal.value) == message


def test_an_unknown_zone_is_an_error_of_the_poll() -> None:
    with pytest.raises(CronError, match="unknown time zone Europe/Atlantis"):
        cron_activity(window("0 9 * * *", "0 17 * * *", "Europe/Atlantis"), datetime(2026, 1, 1, tzinfo=UTC))


def test_the_name_of_the_metric_has_the_schedules_folded() -> None:
    one = window("*/5 1,2 ? * 1-5", "59 23 * * Thu", "Asia/Kolkata")
    assert cron_metric_name(one, 2) == "s2-cron-Asia-Kolkata-xSl51Cm2Qmx1-5-5923xxThu"
