"""Formats times and durations as objects and messages contain them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def written(seconds: float) -> str:
    """`2026-11-21T10:00:00Z`."""
    return _written(int(seconds))


def read(text: str | None) -> float | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def spelled(seconds: float) -> str:
    """A duration in Go's format: `10s`, `1m20s`, `5m0s`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


@lru_cache(4096)
def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
