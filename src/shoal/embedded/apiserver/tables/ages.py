"""Times as tables show them: how long ago, in at most two units.

The steps are those of Kubernetes, because people read `5d23h` and `47h` as what they know. Seconds are counted from
`now_s`, which the caller passes in.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR_DAYS = 365
UNKNOWN = "<unknown>"


@lru_cache(maxsize=4096)
def instant_s(time: str) -> int | None:
    """The seconds of an RFC 3339 time; None for what is not one."""
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        return None
    return None if read.tzinfo is None else int(read.timestamp() // 1)


def since(time: str | None, now_s: int) -> str:
    read = instant_s(time) if time else None
    return UNKNOWN if read is None else duration(now_s - read)


@lru_cache(maxsize=4096)
def duration(seconds: int) -> str:
    if seconds < 2 * _MINUTE:
        return "<invalid>" if seconds < -1 else f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _pair(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _pair(seconds // _HOUR, "h", seconds % _HOUR // _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    days = seconds // _DAY
    if days < 8:
        return _pair(days, "d", seconds % _DAY // _HOUR, "h")
    if days < 2 * _YEAR_DAYS:
        return f"{days}d"
    if days < 8 * _YEAR_DAYS:
        return _pair(days // _YEAR_DAYS, "y", days % _YEAR_DAYS, "d")
    return f"{days // _YEAR_DAYS}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
