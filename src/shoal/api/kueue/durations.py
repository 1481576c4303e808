"""Lengths of time as Kueue's configuration writes them: numbers with units, one after the other, as in `1h30m`.

They are kept as text on the wire and become seconds once. The smallest unit is a nanosecond, the largest an hour.
"""

from __future__ import annotations

from shoal.units.durations import DurationError, nanoseconds
from shoal.units.errors import UserError, Where, excerpt

_LONGEST = 64


def seconds(text: str, where: Where) -> float:
    """Not below zero: there is no time to wait that has passed already."""
    try:
        length_ns = nanoseconds(text[: _LONGEST + 1])
    except DurationError:
        length_ns = None
    if length_ns is None or len(text) > _LONGEST:
        raise UserError(f"{excerpt(text)} is not a length of time", where=where, fix="write e.g. 300s, 5m or 1h30m")
    if length_ns < 0:
        raise UserError(f"must be 0 or more, got {text}", where=where)
    return length_ns / 10**9
