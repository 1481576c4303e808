"""Prunes unknown fields of custom objects before anything else reads them.

Values of the wrong type are not this file's: they stay, and validation refuses them by name (`values.py`). Only
metadata is held to its types here, because the server itself reads it before any validation runs; Kubernetes answers
such an object with 400, not 422.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.crds.structural import METADATA
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]

_JSON_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (str, "string"),
    (int, "number"),
    (float, "number"),
    (list, "array"),
    (dict, "object"),
)


_PLAIN = 1e21
"""From here on Go writes exponents."""


def conform_custom(obj: Obj, schema: Schema) -> list[str]:
    """Drop in place what the schema does not know; what was dropped, as strict validation words it."""
    _check_metadata(obj)
    unknown: list[str] = []
    _prune(obj, schema, "", unknown)
    return [f'unknown field "{path}"' for path in sorted(unknown)]


def unknown_fields(value: Any, schema: Schema) -> list[str]:
    """The paths of what a schema does not know in a value, which is left as it is."""
    unknown: list[str] = []
    _prune(deepcopy(value), schema, "", unknown)
    return sorted(unknown)


def _prune(value: Any, schema: Schema, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_object(value, schema, path, unknown)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune(item, schema.items, f"{path}[{index}]", unknown)
            elif isinstance(item, float):
                value[index] = _as_go_writes(item)


def _prune_object(value: Obj, schema: Schema, path: str, unknown: list[str]) -> None:
    properties, values = schema.properties, schema.values
    for key in list(value):
        shape = properties.get(key, values)
        if shape is None:
            if not schema.keeps_unknown:
                del value[key]
                unknown.append(f"{path}.{key}" if path else key)
            continue
        held = value[key]
        if isinstance(held, dict | list):
            _prune(held, shape, f"{path}.{key}" if path else key, unknown)
        elif isinstance(held, float):
            value[key] = _as_go_writes(held)


def _as_go_writes(number: float) -> float:
    """`1.0` comes out as `1`: clients that read a whole number there would stumble over the point."""
    return int(number) if number.is_integer() and abs(number) < _PLAIN else number


# -- metadata ----------------------------------------------------------------------------------------------------


def _check_metadata(obj: Obj) -> None:
    metadata = obj.get("metadata")
    if metadata is None:
        obj["metadata"] = {}
        return
    fault = _type_fault(metadata, METADATA, "", "ObjectMeta")
    if fault:
        kind = obj.get("kind", "")
        version = str(obj.get("apiVersion", "")).rpartition("/")[2]
        raise status.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {fault}')
    for key in [key for key, value in metadata.items() if value is None]:
        del metadata[key]


def _type_fault(value: Any, schema: Schema, path: str, struct: str) -> str:
    """In the words of Go's JSON decoder; empty where the types fit."""
    if value is None or schema.keeps_unknown:
        return ""
    if not _fits(value, schema):
        where = f" field {struct}.{path}" if path else " value"
        found = next((word for kind, word in _JSON_KINDS if isinstance(value, kind)), "value")
        return f"json: cannot unmarshal {found} into Go struct{where} of type {_go_type(schema, path)}"
    if isinstance(value, dict):
        for key, held in value.items():
            shape = schema.properties.get(key, schema.values)
            if shape is not None:
                deeper = path if schema.values is not None else f"{path}.{key}" if path else key
                fault = _type_fault(held, shape, deeper, struct)
                if fault:
                    return fault
    elif isinstance(value, list) and schema.items is not None:
        for item in value:
            fault = _type_fault(item, schema.items, path, struct)
            if fault:
                return fault
    return ""


def _fits(value: Any, schema: Schema) -> bool:
    match schema.type:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case _:
            return True


def _go_type(schema: Schema, path: str) -> str:
    if schema.type == "object":
        if schema.values is not None:
            return "map[string]string"
        return "v1.OwnerReference" if path == "ownerReferences" else "v1.ObjectMeta"
    return {"array": "[]string", "boolean": "bool", "integer": "int64"}.get(schema.type, "string")
