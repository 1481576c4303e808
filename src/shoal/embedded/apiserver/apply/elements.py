"""Identifies the items of lists by their keys, and resolves the schema of parts of a value.

Ownership is kept by path, so an item of a list needs a name that survives reordering: the values of its key fields
(`k:{"containerPort":80,"protocol":"TCP"}`), or for a set the value itself (`v:"x"`). A key field that was left out
counts with its default, as a port without a protocol is the TCP port. Everything in `apply/` asks here, so that
comparing, merging and removing can never disagree about who is who.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from shoal.embedded.apiserver.schema.node import ANY, Schema

Http1Connection = dict[str, Any]
_encode = msgspec.json.Encoder().encode
_PLAIN = re.compile(r"[\w./:-]*", re.ASCII).fullmatch
"""Values that JSON contains unchanged."""

ABSENT: Final = object()
"""Represents a missing value, which is not the same as null."""

_BUILT_IN_DEFAULTS = {
    ("v1.ContainerPort", "protocol"): "TCP",
    ("v1.ServicePort", "protocol"): "TCP",
    ("v1.LocalObjectReference", "name"): "",
}
"""What optional key fields of built-in types have for a default. The shapes carry none; a required field has its type's
zero value."""
_ZEROS: dict[str, Any] = {"string": "", "integer": 0}


class ItemError(Exception):
    """An item that cannot be distinguished from others; the text is what Kubernetes says of it."""


def child_of(schema: Schema, key: str) -> Schema:
    return schema.properties.get(key) or schema.values or ANY


def is_map(schema: Schema, value: Any) -> bool:
    """Whether the value is a map whose entries are owned one by one."""
    if not isinstance(value, dict):
        return False
    if schema.type == "object":
        return schema.map_type != "atomic"
    return schema.type == "any"


def is_list(schema: Schema, value: Any) -> bool:
    """Whether the value is a list whose items are owned one by one."""
    return schema.type == "array" and schema.list_type != "atomic" and isinstance(value, list)


def item_key(schema: Schema, item: Any) -> str:
    """The name of one item in the list `schema` describes."""
    if schema.list_type == "set":
        return _set_key(item)
    if item is None:
        raise ItemError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ItemError("associative list with keys may not have non-map elements")
    if len(schema.map_keys) == 1 and (field := schema.map_keys[0]) in item:
        return f"k:{{{_quoted(field)}:{_quoted(item[field])}}}"
    found = {}
    for field in sorted(schema.map_keys):
        if field in item:
            found[field] = item[field]
        elif (default := _default(schema, field)) is not None:
            found[field] = default
    if not found:
        fields = " ".join(f'"{field}"' for field in schema.map_keys)
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{fields}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + _encode(found).decode()


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) and _PLAIN(value) else _encode(value).decode()


def _set_key(item: Any) -> str:
    if item is None:
        raise ItemError("associative list without keys has an element that's an explicit null")
    if isinstance(item, dict):
        raise ItemError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ItemError("not supported: associative list with lists as elements")
    return "v:" + _encode(item).decode()


def _default(schema: Schema, field: str) -> Any:
    items = schema.items or ANY
    shape = items.properties.get(field)
    if shape is None or shape.published:
        return shape.published.get("default") if shape is not None else None
    if field in items.required:
        return _ZEROS.get(shape.type)
    return _BUILT_IN_DEFAULTS.get((items.name, field))


def by_key(schema: Schema, items: list[Any] | None) -> dict[str, list[Any]]:
    """The items of a list by name, in order. Live lists may hold duplicates, which are then adjacent."""
    found: dict[str, list[Any]] = {}
    for item in items or ():
        found.setdefault(item_key(schema, item), []).append(item)
    return found


def shape_at(schema: Schema, key: str) -> Schema:
    """The shape below a path element as a field set contains it."""
    if key.startswith("f:"):
        return child_of(schema, key[2:])
    return schema.items or ANY


def is_named(schema: Schema, key: str) -> bool:
    """Whether the path element is a field that the shape names, as opposed to a key of a map or an item."""
    return key[2:] in schema.properties and key.startswith("f:")


def shown(key: str) -> str:
    """One path element as messages have it: `.spec`, `[name="web"]`, `[="x"]`."""
    kind, text = key[:2], key[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    if kind == "k:":
        fields = msgspec.json.decode(text)
        return "[" + ",".join(f"{name}={_encode(value).decode()}" for name, value in fields.items()) + "]"
    return f"[{text}]"
