"""Determines which start of a cron job is due: the latest missed one since the last start."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from shoal.units.schedules import Schedule

_MANY = 100


class NeverTwiceError(ValueError):
    """The schedule is valid, but has fewer than two times."""


class ScheduleTimes(msgspec.Struct, frozen=True):
    time: datetime | None = None
    is_many: bool = False
    """Whether so many starts were missed that an Event is recorded."""


def find_schedule_time(schedule: Schedule, since: datetime, now: datetime, within_s: int | None) -> ScheduleTimes:
    """`within_s`: the maximum delay of a start."""
    if within_s is not None and within_s < (now - since).total_seconds():
        since = now - timedelta(seconds=within_s)
    first = schedule.next(since)
    second = schedule.next(first) if first is not None else None
    if first is None or second is None:
        raise NeverTwiceError("time difference between two schedules is less than 1 second")
    if now < first:
        return ScheduleTimes()
    if now < second:
        return ScheduleTimes(first)
    # After a month without a controller the starts are not counted one by one: all steps of the first length are
    # skipped at once. If the schedule is uneven, that may skip its last time before now.
    step = back = second - first
    missed = (now - first) // step + 1
    base = first + max(missed - 2, 0) * step
    latest = schedule.next(base)
    while latest is None or latest > now:
        base, back = max(base - back, first), back * 2
        latest = schedule.next(base)
    while (time := schedule.next(latest)) is not None and time <= now:
        latest = time
    return ScheduleTimes(latest, missed > _MANY)


def next_wake_s(schedule: Schedule, since: datetime, now: datetime) -> float | None:
    """The time until just after the next start."""
    try:
        due = find_schedule_time(schedule, since, now, None)
    except NeverTwiceError:
        return None
    following = schedule.next(due.time or since)
    return max((following - now).total_seconds(), 0.0) + 0.1 if following is not None else None
