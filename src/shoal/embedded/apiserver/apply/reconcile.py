"""Ownership that was written down before the schema made a map or a list atomic.

The owner of a part now owns the whole. The other way round nothing is inferred, as Kubernetes documents: who
owned the whole of what is granular now owns just the path, since a path alone also stands for an owned empty map.
"""

from __future__ import annotations

from shoal.embedded.apiserver.apply.elements import shape_at
from shoal.embedded.apiserver.apply.fieldset import Fields
from shoal.embedded.apiserver.schema.node import ANY, Schema


def reconciled(fields: Fields, schema: Schema) -> Fields:
    """The same set object when nothing has to move."""
    changed: Fields | None = None
    for key, below in fields.items():
        if not below:
            continue
        shape = shape_at(schema, key)
        if shape is ANY:
            continue
        moved: Fields = {} if _is_atomic(shape) else reconciled(below, shape)
        if moved is not below:
            changed = changed or dict(fields)
            changed[key] = moved
    return fields if changed is None else changed


def _is_atomic(shape: Schema) -> bool:
    if shape.type == "object":
        return shape.map_type == "atomic"
    return shape.type == "array" and shape.list_type == "atomic"
