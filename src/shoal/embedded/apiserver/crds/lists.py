"""Lists that are sets or maps hold nothing twice: what server-side apply relies on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver.crds.values import item_keys
from shoal.embedded.apiserver.field_errors import FieldError, duplicate

Published = Mapping[str, Any]


def list_errors(value: Any, published: Published, path: str = "") -> list[FieldError]:
    """Items of sets and maps that are there twice, anywhere in a value."""
    faults: list[FieldError] = []
    if isinstance(value, list):
        faults += _duplicates(value, published, path)
        items = published.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    faults += list_errors(item, items, f"{path}[{index}]")
    elif isinstance(value, dict):
        properties: Mapping[str, Published] = published.get("properties") or {}
        others = published.get("additionalProperties")
        for name, held in value.items():
            shape = properties.get(name, others)
            if isinstance(held, dict | list) and isinstance(shape, dict):
                below = f"{path}.{name}" if path else name
                if name not in properties:
                    below = f"{path}[{name}]"
                faults += list_errors(held, shape, below)
    return faults


def _duplicates(value: list[Any], published: Published, path: str) -> list[FieldError]:
    kind = published.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return []
    faults = []
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        shown: Any = item
        if kind == "map":
            found = item_keys(item, published)
            if found is None:
                continue
            keys = published.get("x-kubernetes-list-map-keys") or ()
            shown = {key: one for key, one in zip(keys, found, strict=True) if one is not None}
        mark = msgspec.json.encode(shown, order="deterministic")
        if mark in seen:
            faults.append(duplicate(f"{path}[{index}]", shown))
        seen.add(mark)
    return faults
