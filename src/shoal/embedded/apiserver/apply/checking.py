"""Checks an applied configuration against the schema of its kind, with Kubernetes' messages.

Server-side apply knows a configuration by its fields, so here a field that the kind does not have is an error whatever
the field validation of the request says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.embedded.apiserver.apply.elements import ItemError, is_list, item_key
from shoal.embedded.apiserver.apply.fieldset import Path, path_text
from shoal.embedded.apiserver.patches.refusals import go_text
from shoal.embedded.apiserver.schema.node import ANY, Schema
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]


def check(config: Obj, schema: Schema) -> None:
    faults = list(_faults(config, schema, ()))
    if not faults:
        return
    words = faults[0] if len(faults) == 1 else "\n".join(["errors:", *(f"  {fault}" for fault in faults)])
    metadata = config.get("metadata")
    place = f"{_text_in(metadata, 'namespace')}/{_text_in(metadata, 'name')}"
    version = config.get("apiVersion", "")
    shown = version if "/" in version else f"/{version}"
    message = f"failed to create typed patch object ({place}; {shown}, Kind={config.get('kind', '')}): {words}"
    raise ApiError(500, "", message)


def _text_in(metadata: Any, key: str) -> str:
    found = metadata.get(key) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""


def _at(path: Path, words: str) -> str:
    return f"{path_text(path)}: {words}" if path else words


def _faults(value: Any, schema: Schema, path: Path) -> Iterator[str]:
    if value is None or schema.type == "any":
        return
    if schema.type == "object":
        if not isinstance(value, dict):
            yield _at(path, f"expected map, got &{{{go_text(value)}}}")
            return
        yield from _map_faults(value, schema, path)
    elif schema.type == "array":
        if not isinstance(value, list):
            yield _at(path, f"expected list, got &{{{go_text(value)}}}")
            return
        yield from _list_faults(value, schema, path)
    elif not (schema.is_int_or_string or schema.is_quantity or schema.is_time):
        fault = _scalar_fault(value, schema.type)
        if fault:
            yield _at(path, fault)


def _map_faults(value: Obj, schema: Schema, path: Path) -> Iterator[str]:
    is_open = schema.keeps_unknown or schema.values is not None
    for name, below in value.items():
        shape = schema.properties.get(name) or schema.values
        if shape is not None:
            yield from _faults(below, shape, (*path, f"f:{name}"))
        elif not is_open and not path and name == "metadata":
            if below is not None and not isinstance(below, dict):
                yield _at(("f:metadata",), f"expected map, got &{{{go_text(below)}}}")
        elif not is_open and (path or name not in ("apiVersion", "kind")):
            yield _at((*path, f"f:{name}"), "field not declared in schema")
            # Kubernetes looks at no further field of such a map.
            return


def _list_faults(value: list[Any], schema: Schema, path: Path) -> Iterator[str]:
    items = schema.items or ANY
    seen: set[str] = set()
    for index, item in enumerate(value):
        key = f"i:{index}"
        if is_list(schema, value):
            try:
                key = item_key(schema, item)
            except ItemError as fault:
                yield _at(path, f"element {index}: {fault}")
                continue
            if key in seen:
                yield _at(path, f"duplicate entries for key {path_text((key,))}")
            seen.add(key)
        yield from _faults(item, items, (*path, key))


def _scalar_fault(value: Any, wanted: str) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted in ("integer", "number") and not is_number:
        return f"expected numeric (int or float), got {go_type(value)}"
    if wanted == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{go_literal(value)}}}"
    if wanted == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{go_text(value)}}}"
    return ""


def go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {bool: "bool", int: "int64", float: "float64", str: "string"}.get(type(value), "<nil>")


def go_literal(value: Any) -> str:
    """As Go's %#v prints it."""
    if isinstance(value, dict):
        inner = ", ".join(f"{go_literal(key)}:{go_literal(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(go_literal(one) for one in value) + "}"
    if value is None:
        return "interface {}(nil)"
    return msgspec.json.encode(value).decode()
