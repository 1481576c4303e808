"""Durations as Go writes them: decimal numbers with units, one after the other, as in `1h30m` or `-1.5s`.

A text is read from left to right once, so the time that this takes is proportional to its length. What cannot be read
is refused in the words of Go's library, which Kubernetes passes on to its users.

Rejected: one regular expression for the whole text. A repeated group of optional digits can be split in many ways, and
Python tries all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NANOSECONDS: Mapping[str, int] = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
WITH_DAYS: Mapping[str, int] = {**NANOSECONDS, "d": 86_400 * 10**9}
_PART = re.compile(r"([0-9]*)(\.[0-9]*|)([^0-9.]*)")
_LARGEST = 2**63 - 1
_DIGITS = len(str(_LARGEST))


class DurationError(ValueError):
    """The text is no duration; the message is Go's."""


def nanoseconds(text: str, units: Mapping[str, int] = NANOSECONDS) -> int:
    """Raises DurationError for what is no duration, or has no capacity in 64 bits."""
    is_negative = text.startswith("-")
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if not body:
        raise DurationError(f"time: invalid duration {_quoted(text)}")
    total, place = 0, 0
    while place < len(body):
        found = _PART.match(body, place)
        assert found is not None  # noqa: S101  # it matches the empty text too
        place = found.end()
        total += _part_ns(text, units, *found.groups())
        if total > _LARGEST + is_negative:
            raise DurationError(f"time: invalid duration {_quoted(text)}")
    return -total if is_negative else total


def _part_ns(text: str, units: Mapping[str, int], whole: str, fraction: str, unit: str) -> int:
    digits, fraction = whole.lstrip("0"), fraction[1:]
    if (not whole and not fraction) or len(digits) > _DIGITS:
        raise DurationError(f"time: invalid duration {_quoted(text)}")
    if not unit:
        raise DurationError(f"time: missing unit in duration {_quoted(text)}")
    if unit not in units:
        raise DurationError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
    exact = fraction[:_DIGITS]
    scale: int = 10 ** len(exact)
    return int(digits or "0") * units[unit] + int(exact or "0") * units[unit] // scale


def _quoted(text: str) -> str:
    shown = (
        "".join(f"\\x{byte:02x}" for byte in one.encode(errors="surrogatepass"))
        if one < " " or one > "\x7f"
        else f"\\{one}"
        if one in '"\\'
        else one
        for one in text
    )
    return f'"{"".join(shown)}"'
