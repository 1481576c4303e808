"""The wire form of protobuf: numbers of variable length, and fields with a number and one of four kinds of value."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_END_OF_GROUP = 4
_LONGEST_VARINT = 10

Value = int | memoryview


class WireError(ValueError):
    """Bytes that are no protobuf message, in the words of Go's decoder."""


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number and where the next value starts."""
    result = shift = 0
    for _ in range(_LONGEST_VARINT):
        if at >= len(data):
            raise WireError("unexpected EOF")
        byte = data[at]
        result |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise WireError("proto: integer overflow")


def fields(data: memoryview) -> Iterator[tuple[int, int, Value]]:
    """Field number, kind of value, value. Fixed and delimited values are given as their bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _END_OF_GROUP:
            raise WireError("proto: wiretype end group for non-group")
        if number <= 0:
            raise WireError(f"proto: illegal tag {number} (wire type {kind})")
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"proto: illegal wireType {kind}")
        if size > end - at:
            raise WireError("unexpected EOF")
        yield number, kind, data[at : at + size]
        at += size


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def double(value: memoryview) -> float:
    return float(struct.unpack("<d", value)[0])


def single(value: memoryview) -> float:
    return float(struct.unpack("<f", value)[0])


def text(value: memoryview) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise WireError("proto: invalid UTF-8 string") from None
