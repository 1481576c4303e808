"""Reads how long a history keeps what: `raw=2d,5m=90d,1h=730d,ledger=730d,size=2G`.

What is not named keeps its default.
"""

from __future__ import annotations

from shoal.store.history.samples import Retention
from shoal.units.durations import WITH_DAYS, DurationError, nanoseconds
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import Quantity

_SPANS = {"raw": "raw_ms", "5m": "five_ms", "1h": "hour_ms", "ledger": "ledger_ms"}
_SIZE = "size"
_LEAST_MS = 3_600_000
_LEAST_BYTES, _MOST_BYTES = 10**7, 10**13
_NS_PER_MS = 10**6


def read_retention(text: str, where: Where) -> Retention:
    """Raises UserError."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals or name not in (*_SPANS, _SIZE):
            fix = f"write NAME=VALUE with {', '.join((*_SPANS, _SIZE))}, as in raw=2d,5m=90d,size=2G"
            raise UserError(f"{excerpt(part)} is no retention", where=where, fix=fix)
        field = _SPANS.get(name, "most_bytes")
        if field in found:
            raise UserError(f"names {name} twice", where=where)
        found[field] = _bytes(value, where) if name == _SIZE else _span_ms(name, value, where)
    return Retention(**found)


def _span_ms(name: str, text: str, where: Where) -> int:
    try:
        ms = nanoseconds(text, WITH_DAYS) // _NS_PER_MS
    except DurationError:
        raise UserError(f"{name}: {excerpt(text)} is not a time span", where=where, fix="write e.g. 90d") from None
    if ms < _LEAST_MS:
        raise UserError(f"{name}: {excerpt(text)} is too short", where=where, fix="write 1h or more")
    return ms


def _bytes(text: str, where: Where) -> int:
    try:
        size = Quantity.parse(text).value()
    except UserError:
        size = 0
    if not _LEAST_BYTES <= size <= _MOST_BYTES:
        raise UserError(f"size: {excerpt(text)} is no size from 10M to 10T", where=where, fix="write e.g. 2G")
    return size
