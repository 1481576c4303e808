"""Objects inside objects (`x-kubernetes-embedded-resource`): each says what it is, and has a name that could be one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.names import LABEL_1035_WORDS, label_1035_fault, path_segment_fault

Published = Mapping[str, Any]


def embedded_errors(value: Any, published: Published, path: str = "") -> list[FieldError]:
    """What is wrong with every embedded object below a value."""
    faults: list[FieldError] = []
    if isinstance(value, dict):
        if published.get("x-kubernetes-embedded-resource"):
            faults += _object_errors(value, path)
        properties: Mapping[str, Published] = published.get("properties") or {}
        others = published.get("additionalProperties")
        for name, held in value.items():
            shape = properties.get(name, others)
            if isinstance(held, dict | list) and isinstance(shape, Mapping):
                below = f"{path}[{name}]" if name not in properties else f"{path}.{name}" if path else name
                faults += embedded_errors(held, shape, below)
    elif isinstance(value, list) and isinstance(published.get("items"), Mapping):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                faults += embedded_errors(item, published["items"], f"{path}[{index}]")
    return faults


def _object_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    faults = []
    for key in ("apiVersion", "kind"):
        held = value.get(key)
        where = f"{path}.{key}"
        if not isinstance(held, str):
            faults.append(required(where) if held is None else bad_value(where, held, "must be a string"))
        elif not held:
            faults.append(bad_value(where, held, "must not be empty"))
        elif key == "apiVersion" and held.count("/") > 1:
            faults.append(bad_value(where, held, f"unexpected GroupVersion string: {held}"))
        elif key == "kind" and label_1035_fault(held.lower()):
            words = f"may have mixed case, but should otherwise match: {LABEL_1035_WORDS}"
            faults.append(bad_value(where, held, words))
    name = (value.get("metadata") or {}).get("name") if isinstance(value.get("metadata"), dict) else None
    fault = path_segment_fault(name) if isinstance(name, str) and name else ""
    if fault:
        faults.append(bad_value(f"{path}.metadata.name", name, fault))
    return faults
