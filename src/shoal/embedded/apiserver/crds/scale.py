"""Checks the scale subresource of custom objects: replica counts are non-negative integers, the selector is a string.

The messages are those of Kubernetes' accessors, which print values and types as Go does.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value
from shoal.embedded.apiserver.patches.refusals import go_text, go_type

Obj = dict[str, Any]
_MAP = "map[string]interface{}"
_LARGEST_INT64 = 2**63


class AccessError(Exception):
    """There is something at the path that cannot be there."""


def number_at(obj: Any, path: str) -> int | None:
    found, is_there = _at(obj, path)
    if not is_there:
        return None
    if isinstance(found, int) and not isinstance(found, bool) and abs(found) < _LARGEST_INT64:
        return found
    raise AccessError(_complaint(path, found, "int64"))


def text_at(obj: Any, path: str) -> str | None:
    found, is_there = _at(obj, path)
    if not is_there:
        return None
    if isinstance(found, str):
        return found
    raise AccessError(_complaint(path, found, "string"))


def scale_faults(obj: Obj, scale: Obj) -> list[FieldError]:
    return [*_number_faults(obj, scale["specReplicasPath"]), *status_faults(obj, scale)]


def status_faults(obj: Obj, scale: Obj) -> list[FieldError]:
    faults = _number_faults(obj, scale["statusReplicasPath"])
    selector = scale.get("labelSelectorPath")
    if selector:
        try:
            text_at(obj, selector)
        except AccessError as error:
            faults.append(bad_value(selector, "", str(error)))
    return faults


def _number_faults(obj: Obj, path: str) -> list[FieldError]:
    try:
        value = number_at(obj, path) or 0
    except AccessError as error:
        return [bad_value(path, 0, str(error))]
    if value < 0:
        return [bad_value(path, value, "should be a non-negative integer")]
    if value >= 2**31:
        return [bad_value(path, value, f"should be less than or equal to {2**31 - 1}")]
    return []


def _at(obj: Any, path: str) -> tuple[Any, bool]:
    """What is there, and whether anything is: null is something at the end of the path and nothing on the way."""
    steps = path.removeprefix(".").split(".")
    for depth, step in enumerate(steps, 1):
        if obj is None:
            return None, False
        if not isinstance(obj, dict):
            raise AccessError(_complaint(f".{'.'.join(steps[:depth])}", obj, _MAP))
        if step not in obj:
            return None, False
        obj = obj[step]
    return obj, True


def _complaint(path: str, value: Any, expected: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST_INT64:
        value = float(value)
    kind = "<nil>" if value is None else go_type(value)
    return f".{path.removeprefix('.')} accessor error: {go_text(value)} is of the type {kind}, expected {expected}"
