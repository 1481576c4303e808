"""Shortens checks that report many names, numbers or enum values at once.

Each takes the list it adds to, so that an object with nothing wrong costs no list of lists. Paths are built by the
caller only as deep as it goes anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shoal.embedded.apiserver.field_errors import IMMUTABLE, FieldError, bad_value, not_supported, required
from shoal.embedded.apiserver.kinds.spellings import between

Obj = dict[str, Any]
Errors = list[FieldError]

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than 0"
MAX_INT32 = 2**31 - 1


def add_faults(errors: Errors, path: str, value: Any, faults: Iterable[str]) -> None:
    errors.extend(bad_value(path, value, fault) for fault in faults)


def add_negative(errors: Errors, path: str, value: int | None) -> None:
    if value is not None and value < 0:
        errors.append(bad_value(path, value, NEGATIVE))


def add_out_of_range(errors: Errors, path: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        errors.append(bad_value(path, value, between(low, high)))


def add_unsupported(errors: Errors, path: str, value: str | None, allowed: Sequence[str]) -> None:
    """A word of a closed list that has to be there."""
    if not value:
        errors.append(required(path))
    elif value not in allowed:
        errors.append(not_supported(path, value, allowed))


def add_changed(errors: Errors, path: str, new: Any, old: Any) -> None:
    if new != old:
        errors.append(bad_value(path, new, IMMUTABLE))
