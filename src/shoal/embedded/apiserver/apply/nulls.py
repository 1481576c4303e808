"""Nulls of an applied configuration, which mean "no value" to built-in kinds.

Kubernetes' typed objects cannot hold a null: it vanishes when the merged object is decoded, after ownership and
conflicts were decided with it. Custom resources may be nullable and keep theirs for their own validation.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.apply.elements import child_of
from shoal.embedded.apiserver.schema.kubernetes import GoSchema
from shoal.embedded.apiserver.schema.node import ANY, Schema

Obj = dict[str, Any]


def without_nulls(obj: Obj, schema: Schema) -> Obj:
    """The same object, changed in place."""
    if isinstance(schema, GoSchema):
        _drop(obj, schema)
    return obj


def _drop(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        if schema.type != "object" or schema.keeps_unknown:
            return
        for key in [key for key, below in value.items() if below is None]:
            del value[key]
        for key, below in value.items():
            if isinstance(below, dict | list):
                _drop(below, child_of(schema, key))
    elif isinstance(value, list):
        for item in value:
            _drop(item, schema.items or ANY)
