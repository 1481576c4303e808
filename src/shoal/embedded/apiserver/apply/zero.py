"""Computes the empty object of a kind, with which a new object is compared.

A creation owns what it adds to the empty object of its kind. For built-in kinds that object is not empty: structures
that are no pointers in Go (a Deployment's `spec.template.metadata`) and fields that are always sent (`spec.containers`
of a pod) are there, without anything in them. So such a field is not owned for itself, while a map like `labels` is (it
then has a `.` beside its entries), and a zero that was not set is not owned at all. The empty object of a custom
resource has nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shoal.embedded.apiserver.schema.kubernetes import GoSchema
from shoal.embedded.apiserver.schema.node import Schema

_SCALARS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


@lru_cache(maxsize=512)
def zero(schema: Schema) -> dict[str, Any]:
    """The empty object of a kind; shared, never to be changed."""
    return _empty(schema) if isinstance(schema, GoSchema) else {}


def _empty(schema: GoSchema) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, shape in schema.properties.items():
        if schema.zeros.get(name) == "fill":
            made[name] = _value(shape)
        elif name in schema.required and shape.type in ("array", "object"):
            made[name] = None
    return made


def _value(shape: Schema) -> Any:
    if shape.is_quantity:
        return "0"
    if shape.is_int_or_string:
        return 0
    if shape.is_time:
        return None
    if isinstance(shape, GoSchema) and shape.properties:
        return _empty(shape)
    return _SCALARS.get(shape.type)
