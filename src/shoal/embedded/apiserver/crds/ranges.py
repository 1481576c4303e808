"""Checks that a number and its bounds fit the type and format of their schema.

Kubernetes says this of the whole object and not of the field, and holds it against the bounds too whenever a value is
checked: a definition whose maximum is over its own format is accepted, and then refuses every object with that field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_DEFAULT = (-(2**63), 2**63 - 1)
_CHECKED = (("MultipleOf", "multipleOf"), ("Maximum boundary", "maximum"), ("Minimum boundary", "minimum"))
_ROOT = "<nil>"


def range_errors(value: float, published: Mapping[str, Any], path: str) -> list[FieldError]:
    if published.get("type") != "integer":
        return []
    form = published.get("format") or ""
    lowest, highest = _RANGES.get(form, _DEFAULT)
    held = [("Checked", value), *((words, published[key]) for words, key in _CHECKED if published.get(key) is not None)]
    shown = f"with format {form}" if form else "(default format)"
    return [
        bad_value(_ROOT, "", f"{words} value must be of type integer {shown} in {path}")
        for words, number in held
        if not lowest <= number <= highest
    ]
