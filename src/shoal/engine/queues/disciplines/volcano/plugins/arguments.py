"""Reads arguments of plugins: a value that cannot be read counts as absent, so that one mistake stops no cycle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from shoal.units.durations import DurationError, nanoseconds

Arguments = Mapping[str, Any]
_NS = 10**9
_DAY_MINUTES = 24 * 60


def number(arguments: Arguments, name: str, default: float) -> float:
    """An argument of 0 is an answer; one that is no finite number is none."""
    value = arguments.get(name)
    try:
        found = default if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return found if math.isfinite(found) else default


def duration_s(text: Any) -> float | None:
    """Seconds of a duration as Go writes it; None where there is none."""
    try:
        return nanoseconds(text) / _NS if isinstance(text, str) and text else None
    except DurationError:
        return None


def window_minutes(text: Any) -> tuple[int, int] | None:
    """A daily window such as `10:00-21:00`, in minutes after midnight."""
    if not isinstance(text, str):
        return None
    first, dash, last = text.partition("-")
    begin, end = _minute(first), _minute(last)
    return None if not dash or begin is None or end is None else (begin, end)


def _minute(text: str) -> int | None:
    hour, colon, minute = text.strip().partition(":")
    if not (colon and hour.isdecimal() and minute.isdecimal()):
        return None
    total = int(hour) * 60 + int(minute)
    return total if int(minute) < 60 and total <= _DAY_MINUTES else None
