"""Windows of time, with the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shoal.units.calendar_windows import HOUR_MS, TimeWindow, day_starts, month_window, window_of, zone_of
from shoal.units.errors import UserError

BERLIN = zone_of("Europe/Berlin")


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


NOW = _ms("2026-11-27T11:30:00+00:00")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("30d", "2026-10-28T11:30:00+00:00", "2026-11-27T11:30:00+00:00"),
        ("1w", "2026-11-20T11:30:00+00:00", "2026-11-27T11:30:00+00:00"),
        ("90m", "2026-11-27T10:00:00+00:00", "2026-11-27T11:30:00+00:00"),
        ("today", "2026-11-27T00:00:00+01:00", "2026-11-27T11:30:00+00:00"),
        ("yesterday", "2026-11-26T00:00:00+01:00", "2026-11-27T00:00:00+01:00"),
        ("week", "2026-11-23T00:00:00+01:00", "2026-11-27T11:30:00+00:00"),
        ("lastweek", "2026-11-16T00:00:00+01:00", "2026-11-23T00:00:00+01:00"),
        ("month", "2026-11-01T00:00:00+01:00", "2026-11-27T11:30:00+00:00"),
        ("lastmonth", "2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00"),
        ("2026-10", "2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00"),
        ("2026-10-25", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"),
        ("2026-10-01,2026-10-02T12:00:00Z", "2026-10-01T00:00:00+02:00", "2026-10-02T12:00:00+00:00"),
        ("1790000000,1790003600", "2026-09-21T14:13:20+00:00", "2026-09-21T15:13:20+00:00"),
    ],
)
def test_a_window_is_read_in_its_zone(text: str, start: str, end: str) -> None:
    assert window_of(text, NOW, BERLIN) == TimeWindow(_ms(start), _ms(end))


@pytest.mark.parametrize("text", ["", "soon", "2026-13", "2026-02-30", "1,2,3", "30", "2026-10-02,2026-10-01", "0"])
def test_what_is_no_window_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UserError, match="--window"):
        window_of(text, NOW, UTC)


@pytest.mark.parametrize(
    ("year", "month", "hours"), [(2026, 3, 743), (2026, 10, 745), (2026, 2, 672), (2028, 2, 696), (2026, 11, 720)]
)
def test_a_month_has_an_hour_less_or_more_when_clocks_change(year: int, month: int, hours: int) -> None:
    assert month_window(year, month, BERLIN).length_ms == hours * HOUR_MS


def test_days_of_a_window_cover_it_without_gap() -> None:
    window = month_window(2026, 10, BERLIN)
    starts = [start for start, _ in day_starts(window, BERLIN)]
    ends = [*starts[1:], window.end_ms]
    lengths = [(end - start) // HOUR_MS for start, end in zip(starts, ends, strict=True)]
    assert starts[0] == window.start_ms
    assert lengths == [25 if day == 25 else 24 for day in range(1, 32)]


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UserError, match="Europe/Berlin"):
        zone_of("Mars/Olympus")
