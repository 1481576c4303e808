"""Locates metadata, spec and status in the bytes of an object, as servers encode them: in this order.

A reader that needs one section decodes one. Each is found by how the next begins, which text further inside may do as
well; but only the right section is one whole JSON object, so decoding it, with the whole object as fallback, is
correct.

Rejected: finding them by decoding. It passes over every byte, which is what this saves.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TYPES = rb'"kind":"[^"\\]*","apiVersion":"[^"\\]*",|"apiVersion":"[^"\\]*","kind":"[^"\\]*",'
_BEGINNING = re.compile(rb"\{(" + _TYPES + rb')?"metadata":(?=\{)')
_SPEC = b',"spec":{'
"""In a text, its quotes would be escaped: this is a field, here or further in."""
_STATUS = b',"status":{'


class Beginning(NamedTuple):
    """`data[start:end]` is the metadata, if it is one JSON object."""

    start: int
    end: int
    is_typed: bool
    """The object says its kind first."""


def beginning_of(data: bytes) -> Beginning | None:
    found = _BEGINNING.match(data)
    if found is None:
        return None
    start = found.end()
    end = data.find(_SPEC, start)
    return Beginning(start, end, found[1] is not None) if end > 0 else None


def status_of(data: bytes) -> tuple[int, int] | None:
    """Where the field of the status begins, comma and all, and where the status itself: `data[start:-1]` is the status
    if it is one JSON object."""
    at = data.rfind(_STATUS)
    return (at, at + len(_STATUS) - 1) if at > 0 and data.endswith(b"}") else None
