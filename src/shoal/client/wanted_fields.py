"""Compares an object of the server with the fields that a controller wants in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def says(present: Any, wanted: Any) -> bool:
    """Whether an object has all wanted fields; the server or other clients may have added more."""
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(says(present.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(present, list)
            and len(present) == len(wanted)
            and all(says(one, other) for one, other in zip(present, wanted, strict=True))
        )
    return bool(present == wanted)
