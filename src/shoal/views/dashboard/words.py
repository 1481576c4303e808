"""Short words for amounts and times, in lines where each column counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

_SPARKS = "▁▂▃▄▅▆▇█"
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def plural(count: float, one: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,.4g} {one}" if count == 1 else f"{amount(count)} {one}s"


def amount(value: float) -> str:
    """`4`, `0.25`, `1,024`."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def age(created: str, now_s: float) -> str:
    """As kubectl writes ages; empty if the time cannot be read."""
    seconds = seconds_since(created, now_s)
    if seconds is None:
        return ""
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    return f"{seconds // _DAY}d"


def seconds_since(created: str, now_s: float) -> int | None:
    try:
        then = datetime.fromisoformat(created)
    except ValueError:
        return None
    if then.tzinfo is None:
        return None
    return max(0, int(now_s - then.timestamp()))


def duration(seconds: int) -> str:
    """`05:07`, `1:05:07`."""
    minutes, seconds = divmod(seconds, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def sparkline(shares: Sequence[float], width: int) -> str:
    """The last of them as a column each."""
    return "".join(
        _SPARKS[min(len(_SPARKS) - 1, max(0, int(share * len(_SPARKS))))] for share in shares[-width:] if width
    )
