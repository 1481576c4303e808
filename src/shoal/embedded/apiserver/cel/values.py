"""Values that JSON does not have, and how any two values compare.

JSON's own stay what they are: whole numbers are CEL's int, others double, maps are dicts. Equality never fails: values
of different types are just not equal, but for numbers, which are compared by what they are worth.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from shoal.embedded.apiserver.cel.faults import NO_OVERLOAD, CelFault


class Uint(int):
    """An unsigned number; a type of its own in CEL."""

    __slots__ = ()


class TypeName(str):
    """A type as a value: `type(x) == string`."""

    __slots__ = ()


class Optional:
    """A value that may be absent."""

    __slots__ = ("is_there", "value")

    def __init__(self, value: Any = None, *, is_there: bool = True) -> None:
        self.value = value
        self.is_there = is_there


NONE = Optional(is_there=False)


class Opaque:
    """A value of one of Kubernetes' own types: known by its kind, compared by its key."""

    __slots__ = ("held", "key", "kind")

    def __init__(self, kind: str, held: Any, key: Any = None) -> None:
        self.kind = kind
        self.held = held
        self.key = held if key is None else key


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    datetime: "timestamp",
    timedelta: "duration",
    Optional: "optional_type",
    TypeName: "type",
}


def kind_name(value: Any) -> str:
    if isinstance(value, Opaque):
        return value.kind
    return _NAMES.get(type(value), "dyn")


def equal(one: Any, other: Any) -> bool:
    kind, also = type(one), type(other)
    if kind is also and kind in (str, int, bool, float, bytes):
        return bool(one == other)
    if isinstance(one, bool) or isinstance(other, bool):
        return kind is also and one == other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if kind is not also:
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and equal(value, other[key]) for key, value in one.items())
    if isinstance(one, Opaque):
        return one.kind == other.kind and bool(one.key == other.key)
    if isinstance(one, Optional):
        return one.is_there == other.is_there and equal(one.value, other.value)
    return bool(one == other)


_ORDERED = (str, bytes, datetime, timedelta)


def less(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        if isinstance(one, bool) and isinstance(other, bool):
            return one < other
    elif isinstance(one, int | float) and isinstance(other, int | float):
        return one < other
    elif type(one) is type(other) and isinstance(one, _ORDERED):
        return bool(one < other)
    raise CelFault(NO_OVERLOAD)


def contains(container: Any, wanted: Any) -> bool:
    if isinstance(container, dict):
        return not isinstance(wanted, dict | list) and wanted in container
    if isinstance(container, list):
        return any(equal(wanted, one) for one in container)
    raise CelFault(NO_OVERLOAD)
