"""Reads single values of a SchedulingShard; a wrong one is named in a warning and counts as not set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from shoal.units.durations import NANOSECONDS, DurationError, nanoseconds
from shoal.units.near_texts import meant_words
from shoal.units.schedules import Schedule, ScheduleError, read_schedule

_DAY_NS = 86_400 * 10**9
_UNITS = {**NANOSECONDS, "d": _DAY_NS, "w": 7 * _DAY_NS, "y": 365 * _DAY_NS}
"""As in Prometheus, from whose library KAI has its windows."""
_LONGEST = 64


class ShardValues:
    def __init__(self, shard: str, warnings: list[str]) -> None:
        self._shard = shard
        self._warnings = warnings

    def warn(self, path: str, words: str) -> None:
        self._warnings.append(f"SchedulingShard {self._shard}: spec.{path}: {words}")

    def seconds(self, path: str, text: str, default_s: float) -> float:
        """A length of time; it may be negative."""
        if not text:
            return default_s
        if text in ("-1", "0"):
            return float(text)
        try:
            return nanoseconds(text[: _LONGEST + 1], _UNITS) / 10**9
        except DurationError:
            self.warn(path, f"{text[:_LONGEST]!r} is not a length of time; write e.g. 30s, 10m, 12h or 1w")
            return default_s

    def number(self, path: str, text: str, default: float) -> float:
        if not text:
            return default
        try:
            value = float(text[:_LONGEST])
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            self.warn(path, f"{text[:_LONGEST]!r} is not a number")
            return default
        return value

    def chosen(self, path: str, text: str, known: Sequence[str]) -> str:
        """One of the known values; empty if none of them."""
        if text and text not in known:
            words = f"{text[:_LONGEST]!r} is none of {', '.join(known)}{meant_words(text[:_LONGEST], known)}"
            self.warn(path, words)
            return ""
        return text

    def schedule(self, path: str, text: str) -> Schedule | None:
        try:
            return read_schedule(text) if text else None
        except ScheduleError as error:
            self.warn(path, str(error))
            return None

    def moment_s(self, path: str, text: str) -> float | None:
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text[:_LONGEST])
            # The first and last hours of the calendar do not exist in every time zone.
            moment = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.warn(path, f"{text[:_LONGEST]!r} is not a moment; write e.g. 2026-01-05T00:00:00Z")
            return None
        return moment.timestamp()
