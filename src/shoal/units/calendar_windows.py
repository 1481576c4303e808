"""Windows of time as users write them, and the days and months in them, in a time zone.

    window_of("30d", now_ms, zone)         the last 30 times 24 hours
    window_of("today", now_ms, zone)       since midnight; also yesterday, week, lastweek, month, lastmonth
    window_of("2026-10", now_ms, zone)     a month; `2026-10-25` is a day
    window_of("A,B", now_ms, zone)         two moments, RFC 3339 or seconds since 1970

Days and months begin at midnight of the zone, so a day on which clocks change has 23 or 25 hours. A week begins on
Monday. Moments are milliseconds since 1970 in UTC; the current moment is passed in.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shoal.units.durations import WITH_DAYS, DurationError, nanoseconds
from shoal.units.errors import UserError, Where, excerpt

HOUR_MS = 3_600_000
_MS_NS = 10**6
_WEEKS = {**WITH_DAYS, "w": 7 * WITH_DAYS["d"]}
_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNIX = re.compile(r"[0-9]{1,12}")
_FIX = "write a duration (30d), today, yesterday, week, lastweek, month, lastmonth, a month (2026-10), or FROM,TO"


class TimeWindow(NamedTuple):
    """From `start_ms` until just before `end_ms`."""

    start_ms: int
    end_ms: int

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms


def zone_of(name: str) -> tzinfo:
    """Raises UserError for a name that the time zone database does not have."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        fix = "write a name such as UTC or Europe/Berlin"
        raise UserError(f"{excerpt(name)} is not a time zone", where=Where(path="--time-zone"), fix=fix) from None


def window_of(text: str, now_ms: int, zone: tzinfo, where: Where | None = None) -> TimeWindow:
    """Raises UserError for what is no window, and for a window that is empty."""
    place = where or Where(path="--window")
    found = _window(text.strip(), now_ms, zone)
    if found is None:
        raise UserError(f"{excerpt(text)} is not a window of time", where=place, fix=_FIX)
    if found.end_ms <= found.start_ms:
        raise UserError(f"{excerpt(text)} is empty", where=place, fix="the first moment must be before the second")
    return found


def without_future(window: TimeWindow, now_ms: int, where: Where | None = None) -> TimeWindow:
    """Raises UserError for a window that has not begun."""
    if window.start_ms >= now_ms:
        place = where or Where(path="--window")
        raise UserError(f"begins at {rfc3339(window.start_ms)}, which is in the future", where=place, fix=_FIX)
    return TimeWindow(window.start_ms, min(window.end_ms, now_ms))


def day_starts(window: TimeWindow, zone: tzinfo) -> list[tuple[int, date]]:
    """The days that the window touches, each with the later of its midnight and the begin of the window."""
    day = _moment(window.start_ms, zone).date()
    found = [(window.start_ms, day)]
    while (start := midnight_ms(day := day + timedelta(days=1), zone)) < window.end_ms:
        found.append((start, day))
    return found


def midnight_ms(day: date, zone: tzinfo) -> int:
    """The first moment of the day. A zone whose clocks jump over midnight begins the day after the jump."""
    naive = datetime(day.year, day.month, day.day, tzinfo=zone)
    return round(naive.timestamp() * 1000)


def month_window(year: int, month: int, zone: tzinfo) -> TimeWindow:
    first = date(year, month, 1)
    return TimeWindow(midnight_ms(first, zone), midnight_ms(_next_month(first), zone))


def rfc3339(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _window(text: str, now_ms: int, zone: tzinfo) -> TimeWindow | None:
    if "," in text:
        start, _, end = text.partition(",")
        ends = _read_moment(start.strip(), zone), _read_moment(end.strip(), zone)
        return None if ends[0] is None or ends[1] is None else TimeWindow(ends[0], ends[1])
    if found := _MONTH.fullmatch(text):
        year, month = int(found[1]), int(found[2])
        return month_window(year, month, zone) if _is_month(year, month) else None
    if _DAY.fullmatch(text):
        return _day(text, zone)
    return _named(text, now_ms, zone) or _lasting(text, now_ms)


def _named(text: str, now_ms: int, zone: tzinfo) -> TimeWindow | None:
    today = _moment(now_ms, zone).date()
    monday, first = today - timedelta(days=today.weekday()), today.replace(day=1)
    before = (first - timedelta(days=1)).replace(day=1)
    ends: dict[str, tuple[date, date | None]] = {
        "today": (today, None),
        "yesterday": (today - timedelta(days=1), today),
        "week": (monday, None),
        "lastweek": (monday - timedelta(days=7), monday),
        "month": (first, None),
        "lastmonth": (before, first),
    }
    if text not in ends:
        return None
    start, end = ends[text]
    return TimeWindow(midnight_ms(start, zone), now_ms if end is None else midnight_ms(end, zone))


def _lasting(text: str, now_ms: int) -> TimeWindow | None:
    try:
        length = nanoseconds(text, _WEEKS) // _MS_NS
    except DurationError:
        return None
    return TimeWindow(now_ms - length, now_ms)


def _day(text: str, zone: tzinfo) -> TimeWindow | None:
    try:
        day = date.fromisoformat(text)
        return TimeWindow(midnight_ms(day, zone), midnight_ms(day + timedelta(days=1), zone))
    except (ValueError, OverflowError):
        return None


def _read_moment(text: str, zone: tzinfo) -> int | None:
    if _UNIX.fullmatch(text):
        return int(text) * 1000
    try:
        found = datetime.fromisoformat(text)
        return round((found if found.tzinfo else found.replace(tzinfo=zone)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _is_month(year: int, month: int) -> bool:
    return 1 <= month <= 12 and 1970 <= year < 9999


def _next_month(first: date) -> date:
    return (first + timedelta(days=32)).replace(day=1)


def _moment(ms: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(ms / 1000, zone)
