"""Computes all paths that a value sets, which its applier owns.

Leaves, items of lists and entries of maps are owned; a field with a name of its own only holds together what is below
it and is owned itself only when it is null or an empty map.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.apply.elements import by_key, child_of, is_list, is_map
from shoal.embedded.apiserver.apply.fieldset import Fields, node
from shoal.embedded.apiserver.schema.node import ANY, Schema


def field_set(value: Any, schema: Schema) -> Fields:
    found = _node(value, schema, False)
    return found or {}


def _node(value: Any, schema: Schema, member: bool) -> Fields | None:
    children: Fields = {}
    if is_map(schema, value):
        for name in sorted(value):
            one = value[name]
            unnamed = name not in schema.properties or one is None or one == {}
            below = _node(one, child_of(schema, name), unnamed)
            if below is not None:
                children[f"f:{name}"] = below
    elif is_list(schema, value):
        items = schema.items or ANY
        named = by_key(schema, value)
        for key in sorted(named):
            group = named[key]
            below = _node(group[0], items, True) if len(group) == 1 else {}
            if below is not None:
                children[key] = below
    elif value is not None or schema.type not in ("object", "array"):
        member = True
    return node(member, children)
