"""A value without some of its paths, and which fields hold others together."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.apply.elements import child_of, is_list, is_map, is_named, item_key, shape_at
from shoal.embedded.apiserver.apply.fieldset import Fields, is_member, node
from shoal.embedded.apiserver.schema.node import ANY, Schema


def without(value: Any, gone: Fields, schema: Schema, *, keeps_husks: bool = False) -> Any:
    """The value without the paths in `gone`; None when nothing is left. Untouched parts are shared with it.

    A container that lost its last entry is dropped, or with `keeps_husks` left as null: to Kubernetes a null is there.
    """
    if not value or not gone:
        return value
    if is_map(schema, value):
        return _map_without(value, gone, schema, keeps_husks) or None
    if is_list(schema, value):
        return _list_without(value, gone, schema, keeps_husks) or None
    # What is below an atomic value was owned by name before the schema made it atomic: it goes as one.
    return None if isinstance(value, dict | list) else value


def _map_without(value: dict[str, Any], gone: Fields, schema: Schema, keeps_husks: bool) -> dict[str, Any]:
    kept = {}
    for name, below in value.items():
        found = gone.get(f"f:{name}")
        if found is None:
            kept[name] = below
        elif not is_member(found):
            rest = without(below, found, child_of(schema, name), keeps_husks=keeps_husks)
            if rest is not None or below is None or keeps_husks:
                kept[name] = rest
    return kept


def _list_without(value: list[Any], gone: Fields, schema: Schema, keeps_husks: bool) -> list[Any]:
    kept = []
    for item in value:
        found = gone.get(item_key(schema, item))
        if found is None:
            kept.append(item)
        elif not is_member(found):
            kept.append(without(item, found, schema.items or ANY, keeps_husks=keeps_husks))
    return kept


def with_named_fields(fields: Fields, schema: Schema) -> Fields:
    """The set with every named field in it that has paths below: a structure goes when all that is in it goes."""
    made: Fields = {}
    for key, below in fields.items():
        if key == "." or not below:
            made[key] = below
            continue
        children = with_named_fields({k: v for k, v in below.items() if k != "."}, shape_at(schema, key))
        found = node(is_member(below) or is_named(schema, key), children)
        if found is not None:
            made[key] = found
    return made
