"""Finds fields that occur twice in one JSON object.

JSON readers keep the last and say nothing. Asking an exact reader costs several times what reading does, so the value
is written again and the number of `":` in both texts is compared: a key that was lost took one with it. Where a text
could be spelt so that the count is led astray, the exact reader is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

_ODD = (b" :", b"\n:", b"\t:", b"\r:", b"\\u0022")
"""A blank before the colon, or a quote spelt by number."""


def may_have_duplicates(body: bytes, value: Any) -> bool:
    """Rarely true without need, never false where a field occurs twice."""
    if body.count(b'":') != msgspec.json.encode(value).count(b'":'):
        return True
    return any(odd in body for odd in _ODD)


class _Counted(dict[str, Any]):
    """An object that knows which of its fields occurred more than once."""

    twice: tuple[str, ...] = ()


def _counted(pairs: list[tuple[str, Any]]) -> _Counted:
    found = _Counted(pairs)
    if len(found) != len(pairs):
        times = dict.fromkeys(found, 0)
        for key, _ in pairs:
            times[key] += 1
        found.twice = tuple(key for key, count in times.items() if count > 1)
    return found


def duplicate_fields(body: bytes) -> list[str]:
    """In the order of the text, as strict decoding names them."""
    value = json.loads(body.decode("utf-8", "replace"), object_pairs_hook=_counted)
    return [f'duplicate field "{path[1:]}"' for path in _paths(value, "")]


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Counted):
        for key, inner in value.items():
            if key in value.twice:
                yield f"{path}.{key}"
            yield from _paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, f"{path}[{index}]")
