"""The wire format of Kafka's protocol, as far as the lag of a consumer group needs it."""

from __future__ import annotations

import struct
from collections.abc import Iterable

METADATA, METADATA_VERSION = 3, 4
LIST_OFFSETS, LIST_OFFSETS_VERSION = 2, 1
OFFSET_FETCH, OFFSET_FETCH_VERSION = 9, 2
FIND_COORDINATOR, FIND_COORDINATOR_VERSION = 10, 0
SASL_HANDSHAKE, SASL_HANDSHAKE_VERSION = 17, 1
SASL_AUTHENTICATE, SASL_AUTHENTICATE_VERSION = 36, 0
"""Versions that brokers of Kafka 1.0 to 4 have."""


def text(value: str) -> bytes:
    written = value.encode()
    return struct.pack(">h", len(written)) + written


def bytes_field(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def array(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return struct.pack(">i", len(found)) + b"".join(found)


class WireReader:
    """Reads an answer field by field. Raises struct.error or ValueError where it is too short."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def number(self, form: str) -> int:
        """`b`, `h`, `i` or `q`: of one, two, four or eight bytes."""
        (found,) = struct.unpack_from(f">{form}", self._body, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(found)

    def text(self) -> str:
        """Null is empty."""
        return self._taken(self.number("h")).decode(errors="replace")

    def bytes_field(self) -> bytes:
        return self._taken(self.number("i"))

    def count(self) -> range:
        """Of the items of an array. Every item has at least two bytes, which bounds what a wrong answer costs."""
        size = max(self.number("i"), 0)
        if size * 2 > len(self._body):
            raise ValueError("an array is longer than the answer")
        return range(size)

    def _taken(self, size: int) -> bytes:
        size = max(size, 0)
        if self._at + size > len(self._body):
            raise ValueError("a field is longer than the answer")
        found = self._body[self._at : self._at + size]
        self._at += size
        return found
