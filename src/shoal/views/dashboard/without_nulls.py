"""Decodes the JSON of an object as Kubernetes reads it: an entry that is null is one that is absent."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def decoded(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Nulls are removed only where they matter, because servers seldom write them."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        if b"null" not in data:
            raise
        return decoder.decode(msgspec.json.encode(_without_nulls(msgspec.json.decode(data))))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value if inner is not None] if isinstance(value, list) else value
