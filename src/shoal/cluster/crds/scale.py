"""What the scale subresource asks of a custom object: its replica counts are whole numbers that are not negative."""

from __future__ import annotations

from typing import Any

from shoal.cluster.field_errors import FieldError, bad_value

Obj = dict[str, Any]


def scale_faults(obj: Obj, scale: Obj) -> list[FieldError]:
    faults = []
    for key in ("specReplicasPath", "statusReplicasPath"):
        path = scale[key]
        value = _at(obj, path)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        if value < 0:
            faults.append(bad_value(path, value, "should be a non-negative integer"))
        elif value >= 2**31:
            faults.append(bad_value(path, value, f"should be less than or equal to {2**31 - 1}"))
    return faults


def _at(obj: Any, path: str) -> Any:
    for step in path.removeprefix(".").split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj
