"""Parses the schedule of a CronJob: five fields or a descriptor, with the messages of Kubernetes' cron library.

Only whether it can be read is decided here; when it fires is a controller's business.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from shoal.units.durations import DurationError, nanoseconds

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
LONGEST = 4096
"""In letters. A list of all 60 minutes has 170."""
_MOST_DIGITS = 18


class _Bounds(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: place + 1 for place, name in enumerate(_MONTHS)}),
    _Bounds(0, 6, {name: place for place, name in enumerate(_DAYS)}),
)


class _UnreadableError(Exception):
    """Carries the words."""


def schedule_fault(schedule: str) -> str:
    """Why a schedule cannot be read; empty when it can."""
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2]
        text = text.strip()
    if not text:
        return "empty spec string"
    if text.startswith("@"):
        return _descriptor_fault(text)
    fields = text.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, bounds in zip(fields, _FIELDS, strict=True):
            for piece in field.split(","):
                if piece:
                    _read_range(piece, bounds)
    except _UnreadableError as fault:
        return str(fault)
    return ""


def _descriptor_fault(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if text.startswith("@every "):
        try:
            nanoseconds(text.removeprefix("@every "))
        except DurationError as error:
            return f"failed to parse duration {text}: {error}"
        return ""
    return f"unrecognized descriptor: {text}"


def _read_range(piece: str, bounds: _Bounds) -> None:
    """`*`, `?`, a value, `low-high`, each with `/step`."""
    spans = piece.split("/")
    ends = spans[0].split("-")
    if ends[0] in ("*", "?"):
        start, end = bounds.low, bounds.high
        if len(ends) > 1:
            raise (
                _UnreadableError(f"too many hyphens: {piece}")
                if len(ends) > 2
                else _UnreadableError(_not_number(ends[0]))
            )
    else:
        start = _read_value(ends[0], bounds)
        if len(ends) > 2:
            raise _UnreadableError(f"too many hyphens: {piece}")
        end = _read_value(ends[1], bounds) if len(ends) == 2 else start
    if len(spans) > 2:
        raise _UnreadableError(f"too many slashes: {piece}")
    step = 1
    if len(spans) == 2:
        step = _read_number(spans[1])
        if len(ends) == 1:
            end = bounds.high
    if start < bounds.low:
        raise _UnreadableError(f"beginning of range ({start}) below minimum ({bounds.low}): {piece}")
    if end > bounds.high:
        raise _UnreadableError(f"end of range ({end}) above maximum ({bounds.high}): {piece}")
    if start > end:
        raise _UnreadableError(f"beginning of range ({start}) beyond end of range ({end}): {piece}")
    if step == 0:
        raise _UnreadableError(f"step of range should be a positive number: {piece}")


def _read_value(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _read_number(text) if named is None else named


def _read_number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise _UnreadableError(_not_number(text))
    if len(text.lstrip("+-0")) > _MOST_DIGITS:
        raise _UnreadableError(_not_number(text, "value out of range"))
    number = int(text)
    if number < 0:
        raise _UnreadableError(f"negative number ({number}) not allowed: {text}")
    return number


def _not_number(text: str, why: str = "invalid syntax") -> str:
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {why}'
