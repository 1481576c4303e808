"""Parses durations in annotations and stage files: `90s`, `1m30s`, `2h`, `250ms`.

The format is Go's, which every Kubernetes user knows. Rejected: plain numbers, which have no unit.
"""

from __future__ import annotations

from shoal.units.durations import DurationError, nanoseconds
from shoal.units.errors import UserError, excerpt

_MOST_SIGNS = 64
"""Durations are parsed repeatedly, so their length is limited."""
_LONGEST_S = 10 * 365 * 86_400.0


def seconds_of(text: str) -> float:
    """Raises UserError for text that is not a duration, is negative, or is longer than ten years."""
    if len(text) > _MOST_SIGNS:
        raise UserError(f"{excerpt(text)} is longer than a duration may be, which is {_MOST_SIGNS} signs")
    try:
        seconds = nanoseconds(text) / 10**9
    except DurationError:
        seconds = -1.0
    if seconds < 0:
        raise UserError(f"{excerpt(text)} is not a duration such as 90s, 1m30s or 2h")
    if seconds > _LONGEST_S:
        raise UserError(f"{excerpt(text)} is longer than ten years")
    return seconds
