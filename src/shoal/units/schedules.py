"""Computes when a schedule of five fields is due, with Kubernetes' rules.

A field that begins with a star (`*`, `?`, but not `*/2`) restricts nothing; if both days are restricted, either
suffices. Wall clock times that a zone skips are not due, and times that it repeats are due twice.

Rejected: croniter and cronsim. Both accept more than Kubernetes, and both differ from it in cases of clock changes or
of two restricted days (docs/dependencies.md lists the tests).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Protocol

import msgspec

from shoal.units.durations import DurationError, nanoseconds

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGES: tuple[tuple[int, int, Mapping[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: place for place, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: place for place, name in enumerate(_DAYS)}),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LONGEST = 4096
"""The maximum length in characters. A list of all 60 minutes has 170."""
_YEARS_AHEAD = 5
_QUARTER = timedelta(minutes=15)
"""Clocks of all zones differ by whole quarters of an hour."""


class ScheduleError(ValueError):
    """The schedule is invalid."""


class Schedule(Protocol):
    def next(self, after: datetime) -> datetime | None:
        """The first time after `after`, in UTC; None if there is none in the coming years."""
        ...


class Fields(msgspec.Struct, frozen=True):
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Whether one of the two day fields restricts nothing."""
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        time = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        last = time.astimezone(self.zone).date() + timedelta(days=366 * _YEARS_AHEAD)
        while (here := time.astimezone(self.zone)).date() <= last:
            if not self._has_day(here.date()):
                time = self._towards(self._next_day(here.date(), last), time)
            elif here.hour not in self.hours:
                time = _next_quarter(time)
            elif here.minute not in self.minutes:
                time += timedelta(minutes=1)
            else:
                return time
        return None

    def _has_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (by_date and by_week) if self.any_day else (by_date or by_week)

    def _next_day(self, day: date, last: date) -> date:
        day += timedelta(days=1)
        while day <= last and not self._has_day(day):
            day += timedelta(days=1)
        return day

    def _towards(self, day: date, time: datetime) -> datetime:
        """Not beyond the start of that day, which may be at another hour than midnight."""
        begin = datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC) - timedelta(hours=3)
        return max(begin, _next_quarter(time))


class Every(msgspec.Struct, frozen=True):
    """`@every 90s`: a fixed time after the last one."""

    seconds: int

    def next(self, after: datetime) -> datetime | None:
        return after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=self.seconds)


@lru_cache(maxsize=1024)
def read_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    if len(text) > _LONGEST:
        raise ScheduleError(f"longer than {_LONGEST} letters")
    text = text.strip()
    if text.startswith("@every "):
        return Every(max(_duration_s(text.removeprefix("@every ")), 1))
    parts = _DESCRIPTORS.get(text, text).split()
    if len(parts) != len(_RANGES):
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    minutes, hours, days, months, weekdays = (
        _field(part, *limits) for part, limits in zip(parts, _RANGES, strict=True)
    )
    any_day = days[1] or weekdays[1]
    return Fields(minutes[0], hours[0], days[0], months[0], weekdays[0], any_day, zone)


def _field(text: str, low: int, high: int, names: Mapping[str, int]) -> tuple[frozenset[int], bool]:
    values: set[int] = set()
    is_star = False
    for piece in text.split(","):
        if not piece:
            continue
        span, slash, step_text = piece.partition("/")
        step = _value(step_text, {}) if slash else 1
        first_text, hyphen, last_text = span.partition("-")
        if span in ("*", "?"):
            first, last = low, high
            is_star |= step == 1
        else:
            first = _value(first_text, names)
            last = _value(last_text, names) if hyphen else (high if slash else first)
        if step < 1 or not low <= first <= last <= high:
            raise ScheduleError(f"no range from {low} to {high}: {piece}")
        values.update(range(first, last + 1, step))
    return frozenset(values), is_star


def _value(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"\+?[0-9]{1,18}", text):
        raise ScheduleError(f"failed to parse int from {text}")
    return int(text)


def _duration_s(text: str) -> int:
    try:
        return nanoseconds(text) // 10**9
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration @every {text}: {error}") from None


def _next_quarter(time: datetime) -> datetime:
    return time.replace(minute=time.minute // 15 * 15) + _QUARTER
