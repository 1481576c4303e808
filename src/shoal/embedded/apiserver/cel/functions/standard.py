"""Comparing, membership, sizes, conversions between types, optional values."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from shoal.embedded.apiserver.cel.faults import NO_OVERLOAD, CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.functions.times import (
    duration_text,
    parse_duration,
    parse_timestamp,
    seconds,
    timestamp_text,
)
from shoal.embedded.apiserver.cel.values import NONE, Opaque, Optional, TypeName, Uint, contains, kind_name, less

_MOST, _LEAST, _MOST_UNSIGNED = 2**63 - 1, -(2**63), 2**64 - 1


def checked(value: int) -> int:
    if not _LEAST <= value <= _MOST:
        raise CelFault("integer overflow")
    return value


def unsigned(value: int) -> Uint:
    if not 0 <= value <= _MOST_UNSIGNED:
        raise CelFault("unsigned integer overflow")
    return Uint(value)


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?\d+", value):
            raise CelFault(f"type conversion error from 'string' to 'int': {value}")
        return checked(int(value))
    if isinstance(value, datetime):
        return int(seconds(value))
    if isinstance(value, float) and not _LEAST < value < 2.0**63:
        raise CelFault("integer overflow")
    return checked(int(value))


def _to_double(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise CelFault(f"type conversion error from 'string' to 'double': {value}") from None


def _to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        if not value.isdigit():
            raise CelFault(f"type conversion error from 'string' to 'uint': {value}")
        return unsigned(int(value))
    return unsigned(int(value))


def text_of(value: Any) -> str:
    """A value as text, as `string()` makes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelFault("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, Opaque):
        return str(value.held)
    if isinstance(value, str | int):
        return str(value)
    raise CelFault(NO_OVERLOAD)


def double_text(value: float) -> str:
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value).replace("e+0", "e+").replace("e-0", "e-0")


def _to_bool(text: str) -> bool:
    if text in ("true", "True", "TRUE", "t", "T", "1"):
        return True
    if text in ("false", "False", "FALSE", "f", "F", "0"):
        return False
    raise CelFault(f"type conversion error from 'string' to 'bool': {text}")


def _size(value: Any) -> int:
    return len(value)


def _value_of(optional: Optional) -> Any:
    if not optional.is_there:
        raise CelFault("optional.none() dereference")
    return optional.value


def _non_zero(value: Any) -> Optional:
    empty = value is None or (not isinstance(value, Opaque | TypeName) and value in (0, "", b"", False, [], {}))
    return NONE if empty else Optional(value)


TABLE: Table = (
    row("_<_(dyn, dyn) bool", less),
    row("_>_(dyn, dyn) bool", lambda one, other: less(other, one)),
    row("_<=_(dyn, dyn) bool", lambda one, other: not less(other, one)),
    row("_>=_(dyn, dyn) bool", lambda one, other: not less(one, other)),
    row("@in(dyn, list) bool", lambda one, container: contains(container, one)),
    row("@in(dyn, map) bool", lambda one, container: contains(container, one)),
    *(row(f"size({kind}) int", _size) for kind in ("string", "bytes", "list", "map")),
    *(row(f"{kind}!size() int", _size) for kind in ("string", "bytes", "list", "map")),
    row("type(dyn) type", lambda value: TypeName(kind_name(value))),
    row("dyn(dyn) dyn", lambda value: value),
    *(row(f"int({kind}) int", _to_int) for kind in ("int", "uint", "double", "string", "timestamp")),
    *(row(f"uint({kind}) uint", _to_uint) for kind in ("int", "uint", "double", "string")),
    *(row(f"double({kind}) double", _to_double) for kind in ("int", "uint", "double", "string")),
    *(
        row(f"string({kind}) unsized", text_of)
        for kind in ("int", "uint", "double", "string", "bool", "bytes", "timestamp", "duration", "ip", "cidr", "url")
    ),
    row("bytes(string) bytes", str.encode),
    row("bytes(bytes) bytes", bytes),
    row("bool(string) bool", _to_bool),
    row("bool(bool) bool", bool),
    row("timestamp(string) timestamp", parse_timestamp),
    row("timestamp(timestamp) timestamp", lambda value: value),
    row("timestamp(int) timestamp", lambda value: parse_timestamp("1970-01-01T00:00:00Z") + timedelta(seconds=value)),
    row("duration(string) duration", parse_duration),
    row("duration(duration) duration", lambda value: value),
    row("optional.of(dyn) optional_of", Optional),
    row("optional.ofNonZeroValue(dyn) optional_of", _non_zero),
    row("optional.none() optional_type", lambda: NONE),
    row("optional_type!hasValue() bool", lambda optional: optional.is_there),
    row("optional_type!value() item", _value_of),
    row("optional_type!orValue(dyn) item", lambda optional, other: optional.value if optional.is_there else other),
    row("optional_type!or(optional_type) same", lambda optional, other: optional if optional.is_there else other),
)
