"""Defaults of custom objects: what the definition says of fields that a writer left out.

Filling in runs on every write and changes nothing the second time. A null where the schema allows none counts as left
out: it becomes the default, or goes. (Unknown nulls inside free-form parts stay: they are data.)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

Published = Mapping[str, Any]


def fill_defaults(value: Any, published: Published) -> None:
    """In place, for a whole object or any part of one."""
    if isinstance(value, dict):
        _fill_object(value, published)
    elif isinstance(value, list):
        items = published.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if _is_unwanted_null(item, items) and "default" in items:
                    value[index] = deepcopy(items["default"])
                fill_defaults(value[index], items)


def _fill_object(value: dict[str, Any], published: Published) -> None:
    properties: Mapping[str, Published] = published.get("properties") or {}
    for name, written in properties.items():
        default = written.get("default")
        if default is not None and (name not in value or _is_unwanted_null(value[name], written)):
            value[name] = deepcopy(default)
    others: Any = published.get("additionalProperties")
    for name in list(value):
        shape: Any = properties.get(name, others)
        if not isinstance(shape, dict):
            continue
        if _is_unwanted_null(value[name], shape):
            if "default" not in shape:
                del value[name]
                continue
            value[name] = deepcopy(shape["default"])
        fill_defaults(value[name], shape)


def _is_unwanted_null(value: Any, shape: Published) -> bool:
    return value is None and not shape.get("nullable")
