"""One error of one field, with Kubernetes' message.

Validation collects these; `status.invalid` makes one answer of all of them. Values are shown as Kubernetes shows them:
text in quotes, everything else as compact JSON, long things cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

_LONGEST_VALUE = 512


class FieldError(msgspec.Struct, frozen=True):
    """Made by the functions below; `reason` is the cause's machine-readable word."""

    reason: str
    words: str
    field: str
    value: Any = msgspec.UNSET
    detail: str = ""

    def body(self) -> str:
        text = self.words if self.value is msgspec.UNSET else f"{self.words}: {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def text(self) -> str:
        return f"{self.field}: {self.body()}" if self.field else self.body()


def shown(value: Any) -> str:
    if isinstance(value, str):
        text = '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    else:
        text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", "Required value", field, detail=detail)


def bad_value(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", "Invalid value", field, value, detail)


def without_value(field: str, detail: str) -> FieldError:
    """An invalid value that is not shown."""
    return FieldError("FieldValueInvalid", "Invalid value", field, detail=detail)


def not_supported(field: str, value: Any, allowed: Sequence[str]) -> FieldError:
    listed = ", ".join(f'"{one}"' for one in allowed)
    return FieldError("FieldValueNotSupported", "Unsupported value", field, value, f"supported values: {listed}")


def not_allowed(field: str, detail: str) -> FieldError:
    """Kubernetes' `Forbidden` of a field, which is not the 403 of a request."""
    return FieldError("FieldValueForbidden", "Forbidden", field, detail=detail)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", "Duplicate value", field, value)


def missing_reference(field: str, value: Any, detail: str = "") -> FieldError:
    return FieldError("FieldValueNotFound", "Not found", field, value, detail)


def too_long(field: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", "Too long", field, detail=f"may not be more than {limit} bytes")


def too_many(field: str, found: int, limit: int) -> FieldError:
    items = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooMany", "Too many", field, found, f"must have at most {limit} {items}")


def wrong_type(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueTypeInvalid", "Invalid value", field, value, detail)


IMMUTABLE = "field is immutable"
