"""Lengths of time as Kueue's configuration writes them: numbers with units, one after the other, as in `1h30m`.

They are kept as text on the wire and become seconds once. The smallest unit is a nanosecond, the largest an hour.
"""

from __future__ import annotations

import re

from shoal.units.errors import UserError, Where, excerpt

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_PARTS = re.compile(_PART)
_WHOLE = re.compile(rf"(-?)((?:{_PART})+|0)")
_LONGEST = 64


def seconds(text: str, where: Where) -> float:
    """Not below zero: there is no time to wait that has passed already."""
    match = _WHOLE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise UserError(f"{excerpt(text)} is not a length of time", where=where, fix="write e.g. 300s, 5m or 1h30m")
    if match[1] and match[2] != "0":
        raise UserError(f"must be 0 or more, got {text}", where=where)
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PARTS.findall(match[2]))
