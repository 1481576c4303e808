"""The zero values that Go writes: structs, numbers and times that cannot be absent.

A stored pod has `status: {}` and every container `resources: {}`; a ReplicaSet's status counts `replicas: 0`; a
condition without times has `lastTransitionTime: null`. Clients and managed fields know them. This runs after
defaulting, which would else have to tell such a zero from one that was sent. Lists and maps that Go would write as null
are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeGuard

from shoal.embedded.apiserver.schema.kubernetes import GoSchema
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]
Fill = Callable[[Any], None]

_NO_ZERO: Final = object()
"""Of what Go leaves out, or writes in a way that clients do not need."""
_SCALARS: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0}


def fill(obj: Obj, schema: Schema) -> None:
    """Add to `obj`, in place, what Go always writes. Does nothing to kinds that are not built in."""
    if isinstance(schema, GoSchema):
        _filler(schema)(obj)


def fill_part(obj: Obj, schema: Schema, name: str) -> None:
    """The same for one field of `obj`, where nothing else can have changed since it was filled."""
    part = schema.properties.get(name)
    if not isinstance(schema, GoSchema) or part is None:
        return
    if name not in obj and schema.zeros.get(name) == "fill" and (zero := _zero(part)) is not _NO_ZERO:
        obj[name] = zero
    if isinstance(obj.get(name), dict):
        fill(obj[name], part)


def _filler(schema: GoSchema) -> Fill:
    if schema.fill is None:
        schema.fill = _compile(schema)
    return schema.fill


def _compile(schema: GoSchema) -> Fill:
    if schema.properties:
        return _StructZeroFiller(schema)
    inner = schema.items or schema.values
    if inner is None or not _adds(inner, set()):
        return _nothing
    below = _filler(inner)
    if schema.items is not None:
        return lambda items: _each(below, items)
    return lambda values: _each(below, values.values())


def _each(below: Fill, values: Any) -> None:
    for value in values:
        below(value)


def _nothing(value: Any) -> None:
    """There is nothing to add below."""


def _adds(schema: Schema, seen: set[int]) -> TypeGuard[GoSchema]:
    """Whether something may have to be added in such a value or below it; most of what a pod can have is all optional.
    `seen`: where this has been asked before, for shapes lead back to themselves."""
    if not isinstance(schema, GoSchema) or id(schema) in seen:
        return False
    seen.add(id(schema))
    if any(how == "fill" and _zero(schema.properties[key]) is not _NO_ZERO for key, how in schema.zeros.items()):
        return True
    below = (*schema.properties.values(), schema.items, schema.values)
    return any(_adds(one, seen) for one in below if one is not None)


class _StructZeroFiller:
    """The filler of one Go struct. Its tables are made when it first runs, since shapes lead back to themselves."""

    __slots__ = ("_below", "_missing", "_schema")

    def __init__(self, schema: GoSchema) -> None:
        self._schema = schema
        self._missing: list[tuple[str, Any]] | None = None
        self._below: dict[str, Fill] = {}

    def _prepare(self) -> list[tuple[str, Any]]:
        missing: list[tuple[str, Any]] = []
        for key, field in self._schema.properties.items():
            if self._schema.zeros.get(key) == "fill" and (zero := _zero(field)) is not _NO_ZERO:
                missing.append((key, zero))
            if _adds(field, set()):
                self._below[key] = _filler(field)
        return missing

    def __call__(self, obj: Obj) -> None:
        missing = self._missing
        if missing is None:
            missing = self._missing = self._prepare()
        for key, zero in missing:
            if key not in obj:
                obj[key] = {} if zero == {} else zero
        below = self._below
        for key, value in obj.items() if below else ():
            fill_in = below.get(key)
            # Some lists are written as null on purpose: an autoscaler's `currentMetrics`.
            if fill_in is not None and value is not None:
                fill_in(value)


def _zero(schema: Schema) -> Any:
    if schema.is_quantity:
        return "0"
    if schema.is_int_or_string:
        return 0
    if schema.is_time:
        return None
    if schema.keeps_unknown:
        return _NO_ZERO
    return {} if schema.properties else _SCALARS.get(schema.type, _NO_ZERO)
