"""Locates metadata, spec and status in the bytes of an object, as servers encode them: in this order.

A reader that needs one section decodes only that section. Each is found by the beginning of the next one, which may
also occur inside a section; but only the right section is one complete JSON object, so decoding it, with the whole
object as fallback, is correct.

Rejected: finding them by decoding. It reads every byte, which this module avoids.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TYPES = rb'"kind":"[^"\\]*","apiVersion":"[^"\\]*",|"apiVersion":"[^"\\]*","kind":"[^"\\]*",'
_BEGINNING = re.compile(rb"\{(" + _TYPES + rb')?"metadata":(?=\{)')
_SPEC = b',"spec":{'
"""Inside a string its quotes would be escaped: this is a field, here or at a deeper level."""
_STATUS = b',"status":{'


class Beginning(NamedTuple):
    """`data[start:end]` is the metadata, if it is one JSON object."""

    start: int
    end: int
    is_typed: bool
    """Whether the object begins with its kind."""


def beginning_of(data: bytes) -> Beginning | None:
    found = _BEGINNING.match(data)
    if found is None:
        return None
    start = found.end()
    end = data.find(_SPEC, start)
    return Beginning(start, end, found[1] is not None) if end > 0 else None


def status_of(data: bytes) -> tuple[int, int] | None:
    """The start of the status field, with its comma, and the start of the status itself: `data[start:-1]` is the status
    if it is one JSON object.
    """
    at = data.rfind(_STATUS)
    return (at, at + len(_STATUS) - 1) if at > 0 and data.endswith(b"}") else None
