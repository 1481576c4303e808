"""Reads fields of objects that may have any structure."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.selectors import LabelSelector
from shoal.policy.advice import Obj


def dig(obj: Any, *steps: str | int) -> Any:
    """The value at this path; None if a part of the path is missing or has another type."""
    for step in steps:
        if isinstance(step, int):
            obj = obj[step] if isinstance(obj, list) and step < len(obj) else None
        else:
            obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def maps(found: Any) -> list[Obj]:
    """The maps of a list; empty if it is not a list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def strings(found: Any) -> list[str]:
    """The strings of a list; empty if it is not a list."""
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def string_keys(found: Any) -> dict[str, Any]:
    """The entries of a map whose keys are strings; empty if it is not a map."""
    return {key: value for key, value in found.items() if isinstance(key, str)} if isinstance(found, dict) else {}


def label_selector(raw: Any) -> LabelSelector | None:
    """None if it is not a selector."""
    try:
        return msgspec.convert(raw, LabelSelector) if isinstance(raw, dict) else None
    except msgspec.ValidationError:
        return None
