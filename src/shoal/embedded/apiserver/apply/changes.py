"""Computes the paths that differ between two versions of a value.

`touched` are the paths that are new or have another value; `removed` those that are gone. A map or list that appears
or goes counts itself beside all that is in it. Empty and null containers count as leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from shoal.embedded.apiserver.apply.elements import ABSENT, by_key, child_of, is_list, is_map
from shoal.embedded.apiserver.apply.fieldset import Fields, node, union
from shoal.embedded.apiserver.schema.node import ANY, Schema


class Changes(NamedTuple):
    touched: Fields
    removed: Fields


_CONTAINERS = (dict, list)
"""A tuple is tested much faster than a union of types."""
_NONE: tuple[Fields | None, Fields | None] = (None, None)


def changes(old: Any, new: Any, schema: Schema) -> Changes:
    touched, removed = _compare(old, new, schema)
    return Changes(touched or {}, removed or {})


def _compare(old: Any, new: Any, schema: Schema) -> tuple[Fields | None, Fields | None]:
    if old is ABSENT:
        return everything(new, schema), None
    if new is ABSENT:
        return None, everything(old, schema)
    if old == new:
        return _NONE
    if not old and not new:
        return {}, None
    if is_map(schema, old) or is_map(schema, new):
        return _compare_maps(old, new, schema)
    if is_list(schema, old) or is_list(schema, new):
        return _compare_lists(old, new, schema)
    return {}, None


def _compare_maps(old: Any, new: Any, schema: Schema) -> tuple[Fields | None, Fields | None]:
    before = old if isinstance(old, dict) else {}
    after = new if isinstance(new, dict) else {}
    touched: Fields = {}
    removed: Fields = {}
    for name in sorted({**before, **after}):
        was, now = before.get(name, ABSENT), after.get(name, ABSENT)
        if was is ABSENT and not isinstance(now, _CONTAINERS):
            touched[f"f:{name}"] = {}
            continue
        if was == now:
            continue
        _note(f"f:{name}", _compare(was, now, child_of(schema, name)), touched, removed)
    replaced = not isinstance(old, dict | None) or not isinstance(new, dict | None)
    return node(replaced, touched), removed or None


def _compare_lists(old: Any, new: Any, schema: Schema) -> tuple[Fields | None, Fields | None]:
    before = by_key(schema, old if isinstance(old, list) else None)
    after = by_key(schema, new if isinstance(new, list) else None)
    touched: Fields = {}
    removed: Fields = {}
    for key in sorted({**before, **after}):
        was, now = before.get(key, []), after.get(key, [])
        if was == now:
            continue
        if len(was) <= 1 and len(now) <= 1:
            found = _compare(was[0] if was else ABSENT, now[0] if now else ABSENT, schema.items or ANY)
        else:
            found = ({}, None) if now else (None, {})
        _note(key, found, touched, removed)
    return touched or None, removed or None


def _note(key: str, found: tuple[Fields | None, Fields | None], touched: Fields, removed: Fields) -> None:
    if found[0] is not None:
        touched[key] = found[0]
    if found[1] is not None:
        removed[key] = found[1]


def everything(value: Any, schema: Schema) -> Fields:
    """Every path of a value that appears or goes as a whole, its own included."""
    if not value:
        return {}
    kind = schema.type
    if isinstance(value, dict):
        if kind != "any" and (kind != "object" or schema.map_type == "atomic"):
            return {}
        children: Fields = {".": {}}
        for name, key, shape in _parts(schema, tuple(value)) if schema.properties else _entries(schema, value):
            below = value[name]
            # Most of an object is plain leaves: they are not worth a call each.
            children[key] = everything(below, shape) if isinstance(below, _CONTAINERS) else {}
        return children
    if isinstance(value, list) and kind == "array" and schema.list_type != "atomic":
        items = schema.items or ANY
        found = by_key(schema, value)
        children = {".": {}}
        for key in sorted(found):
            group = found[key]
            children[key] = everything(group[0], items) if len(group) == 1 else {}
        return children
    return {}


Parts = tuple[tuple[str, str, Schema], ...]


@lru_cache(maxsize=4096)
def _parts(schema: Schema, fields: tuple[str, ...]) -> Parts:
    """Name, path element and shape of a structure's fields, in order; few combinations of fields ever occur."""
    return _entries(schema, fields)


def _entries(schema: Schema, value: Iterable[str]) -> Parts:
    return tuple((name, f"f:{name}", child_of(schema, name)) for name in sorted(value))


def both(found: Changes) -> Fields:
    return union(found.touched, found.removed)
