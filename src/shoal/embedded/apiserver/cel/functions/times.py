"""Instants and durations. Both keep microseconds, as Python's do; Kubernetes writes none finer into objects."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.units.durations import DurationError, nanoseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(text: str) -> datetime:
    try:
        if not re.match(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d", text):
            raise ValueError(text)
        found = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text.upper()))
    except ValueError:
        raise CelFault(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse') from None
    if found.tzinfo is None:
        raise CelFault(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"')
    return found.astimezone(UTC)


def parse_duration(text: str) -> timedelta:
    try:
        return timedelta(microseconds=nanoseconds(text) / 1000)
    except DurationError as error:
        raise CelFault(str(error)) from None


def timestamp_text(value: datetime) -> str:
    text = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{text.rstrip('0').rstrip('.')}Z"


def duration_text(value: timedelta) -> str:
    micros = value // timedelta(microseconds=1)
    whole, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{'-' if micros < 0 else ''}{whole}{fraction}s"


def seconds(value: datetime) -> float:
    return (value - _EPOCH) // timedelta(seconds=1)


def _local(value: datetime, zone: str) -> datetime:
    offset = re.fullmatch(r"([+-]?)(\d{2}):(\d{2})", zone)
    if offset:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return value.astimezone(timezone(-ahead if offset[1] == "-" else ahead))
    try:
        return value.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelFault(f"unknown time zone {zone}") from None


_PARTS: dict[str, Any] = {
    "getFullYear": lambda value: value.year,
    "getMonth": lambda value: value.month - 1,
    "getDayOfYear": lambda value: value.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda value: value.day - 1,
    "getDate": lambda value: value.day,
    "getDayOfWeek": lambda value: (value.weekday() + 1) % 7,
    "getHours": lambda value: value.hour,
    "getMinutes": lambda value: value.minute,
    "getSeconds": lambda value: value.second,
    "getMilliseconds": lambda value: value.microsecond // 1000,
}
_LENGTHS: dict[str, Any] = {
    "getHours": lambda value: int(value / timedelta(hours=1)),
    "getMinutes": lambda value: int(value / timedelta(minutes=1)),
    "getSeconds": lambda value: int(value / timedelta(seconds=1)),
    "getMilliseconds": lambda value: int(value / timedelta(milliseconds=1)) % 1000,
}

TABLE: Table = (
    *(row(f"timestamp!{name}() int", part) for name, part in _PARTS.items()),
    *(
        row(f"timestamp!{name}(string) int", lambda value, zone, part=part: part(_local(value, zone)))
        for name, part in _PARTS.items()
    ),
    *(row(f"duration!{name}() int", length) for name, length in _LENGTHS.items()),
    row("_+_(timestamp, duration) timestamp", lambda one, other: one + other),
    row("_+_(duration, timestamp) timestamp", lambda one, other: one + other),
    row("_+_(duration, duration) duration", lambda one, other: one + other),
    row("_-_(timestamp, duration) timestamp", lambda one, other: one - other),
    row("_-_(timestamp, timestamp) duration", lambda one, other: one - other),
    row("_-_(duration, duration) duration", lambda one, other: one - other),
)
