"""Encodes and decodes frames of SPDY 3.1, by which container runtimes serve the streams of a command.

Only what a client of such streams needs: it opens streams with headers, sends and receives data, and answers pings.
Received headers are not read. Rejected: WebSockets, whose older protocol has no way to end the input of a command.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

import msgspec

_CONTROL, _VERSION = 0x8000, 3
_OPEN, _REPLY, _RESET, _PING, _GO_AWAY = 1, 2, 3, 6, 7
_END = 1
_HEAD_BYTES = 8
_MOST_BYTES = 1 << 24


class Data(msgspec.Struct, frozen=True):
    stream: int
    content: bytes
    is_end: bool


class Reset(msgspec.Struct, frozen=True):
    """The other side refuses or aborts a stream."""

    stream: int


class Ping(msgspec.Struct, frozen=True):
    number: int


class GoAway(msgspec.Struct, frozen=True):
    """The other side ends the connection."""


Frame = Data | Reset | Ping | GoAway


class FrameWriter:
    """The headers of all streams of a connection are compressed as one sequence."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj()

    def opened(self, stream: int, headers: Mapping[str, str]) -> bytes:
        block = struct.pack("!I", len(headers))
        for name, value in headers.items():
            for text in (name.lower().encode(), value.encode()):
                block += struct.pack("!I", len(text)) + text
        packed = self._compressor.compress(block) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        return _control(_OPEN, struct.pack("!IIBB", stream, 0, 0, 0) + packed)

    def data(self, stream: int, content: bytes, *, is_end: bool = False) -> bytes:
        flags = _END if is_end else 0
        return struct.pack("!II", stream, (flags << 24) | len(content)) + content

    def ping(self, number: int) -> bytes:
        return _control(_PING, struct.pack("!I", number))


class FrameReader:
    """Gets bytes as they arrive, in any pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Frames that a client does not need are left out."""
        self._rest += data
        while len(self._rest) >= _HEAD_BYTES:
            first, second = struct.unpack("!II", self._rest[:_HEAD_BYTES])
            flags, length = second >> 24, second & (_MOST_BYTES - 1)
            if len(self._rest) < _HEAD_BYTES + length:
                return
            content = self._rest[_HEAD_BYTES : _HEAD_BYTES + length]
            self._rest = self._rest[_HEAD_BYTES + length :]
            frame = _control_frame(first & 0xFFFF, flags, content) if first >> 31 else None
            if not first >> 31:
                frame = Data(first, content, bool(flags & _END))
            if frame is not None:
                yield frame


def _control_frame(type_: int, flags: int, content: bytes) -> Frame | None:
    if type_ == _GO_AWAY:
        return GoAway()
    if len(content) < 4:
        return None
    number = struct.unpack("!I", content[:4])[0]
    if type_ == _RESET:
        return Reset(number)
    if type_ == _PING:
        return Ping(number)
    if type_ == _REPLY and flags & _END:
        return Data(number, b"", True)
    return None


def _control(type_: int, content: bytes) -> bytes:
    return struct.pack("!HHI", _CONTROL | _VERSION, type_, len(content)) + content
