"""The cron trigger: active between two schedules of a time zone.

A window is open if its end comes before its next start. A start that never comes keeps it shut, an end that never
comes keeps it open once the other one is due.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.units.schedules import Schedule, ScheduleError, read_schedule

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


class CronError(ValueError):
    """The metadata of a cron trigger is invalid."""


class CronWindow(Struct, frozen=True):
    timezone: str
    start: str
    end: str
    replicas: int


class CronActivity(Struct, frozen=True):
    is_active: bool
    value: int


def read_cron(metadata: Mapping[str, str]) -> CronWindow:
    """The checks that the trigger itself makes; the time zone is looked up when its schedule is evaluated."""
    found = {}
    for name in ("start", "end", "timezone", "desiredReplicas"):
        found[name] = metadata.get(name, "").strip()
        if not found[name]:
            raise CronError(f'missing required parameter "{name}" in [triggerMetadata]')
    for name in ("start", "end"):
        try:
            _schedule(found[name])
        except ScheduleError as error:
            raise CronError(f"error parsing {name} schedule: {error}") from None
    if found["start"] == found["end"]:
        raise CronError("start and end can not have exactly same time input")
    if not _WHOLE.fullmatch(found["desiredReplicas"]):
        raise CronError(f"desiredReplicas {found['desiredReplicas']!r} is not a whole number")
    replicas = int(found["desiredReplicas"])
    if replicas == 0:
        raise CronError("no desiredReplicas specified")
    return CronWindow(found["timezone"], found["start"], found["end"], replicas)


def cron_activity(window: CronWindow, now: datetime) -> CronActivity:
    try:
        zone = ZoneInfo(window.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CronError(f"unable to load timezone: unknown time zone {window.timezone}") from None
    start, end = (read_schedule(text, zone).next(now) for text in (window.start, window.end))
    is_active = start is not None and (end is None or end <= start)
    return CronActivity(is_active, window.replicas if is_active else 0)


def never_due(window: CronWindow, now: datetime) -> str:
    """The field of which no time comes in the next years, if there is one."""
    return next((name for name in ("start", "end") if read_schedule(getattr(window, name)).next(now) is None), "")


def cron_metric_name(window: CronWindow, index: int) -> str:
    return indexed_name(index, f"cron-{window.timezone}-{_folded(window.start)}-{_folded(window.end)}")


def _schedule(text: str) -> Schedule:
    if text.startswith("@"):
        raise ScheduleError(f"parser does not accept descriptors: {text}")
    return read_schedule(text)


_FOLDED = {" ": "", "*": "x", "/": "Sl", "?": "Qm", ",": "Cm"}


def _folded(schedule: str) -> str:
    return "".join(_FOLDED.get(letter, letter) for letter in schedule)
