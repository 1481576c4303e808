"""Encodes and decodes frames of SPDY 3.1: container runtimes serve commands by them, and kubectl forwards ports.

Only what such streams need: they are opened with headers, and answered, transfer data, and end. Headers of answers are
not read. Rejected: WebSockets, whose older protocol has no way to end the input of a command.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from functools import cache

import msgspec

_CONTROL, _VERSION = 0x8000, 3
_OPEN, _REPLY, _RESET, _PING, _GO_AWAY = 1, 2, 3, 6, 7
_END, _CANCEL = 1, 5
_OPEN_BYTES = 10
"""Of a frame that opens a stream, before its headers."""
_HEAD_BYTES = 8
_MOST_BYTES = 1 << 24
_MOST_HEADERS = 64 * 1024


class Opened(msgspec.Struct, frozen=True):
    """The other side opens a stream, with headers of small letters."""

    stream: int
    headers: Mapping[str, str]


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


Frame = Opened | Data | Reset | Ping | GoAway


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

    def accepted(self, stream: int) -> bytes:
        packed = self._compressor.compress(struct.pack("!I", 0)) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        return _control(_REPLY, struct.pack("!I", stream) + packed)

    def reset(self, stream: int) -> bytes:
        return _control(_RESET, struct.pack("!II", stream, _CANCEL))

    def data(self, stream: int, content: bytes, *, is_end: bool = False) -> bytes:
        flags = _END if is_end else 0
        return struct.pack("!II", stream, (flags << 24) | len(content)) + content

    def ping(self, number: int) -> bytes:
        return _control(_PING, struct.pack("!I", number))


class FrameReader:
    """Gets bytes as they arrive, in any pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._headers = zlib.decompressobj(zdict=_dictionary())

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
            frame: Frame | None = None
            if not first >> 31:
                frame = Data(first, content, bool(flags & _END))
            elif first & 0xFFFF == _OPEN:
                frame = self._opened(content)
            else:
                frame = _control_frame(first & 0xFFFF, flags, content)
            if frame is not None:
                yield frame

    def _opened(self, content: bytes) -> Frame | None:
        if len(content) < _OPEN_BYTES:
            return None
        try:
            block = self._headers.decompress(content[_OPEN_BYTES:], _MOST_HEADERS)
        except zlib.error:
            # The headers of later streams depend on these.
            return GoAway()
        return Opened(struct.unpack("!I", content[:4])[0], _headers_in(block))


def _headers_in(block: bytes) -> dict[str, str]:
    """What a block has until its end or a fault."""
    texts: list[str] = []
    at = 4
    while at + 4 <= len(block):
        length = struct.unpack("!I", block[at : at + 4])[0]
        texts.append(block[at + 4 : at + 4 + length].decode(errors="replace"))
        at += 4 + length
    return {name.lower(): value for name, value in zip(texts[::2], texts[1::2], strict=False)}


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


_NAMES = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_CODES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service Unavailable"
)
_VALUES = (
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,"
    "image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivate"
    "max-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


@cache
def _dictionary() -> bytes:
    """With which the published format compresses headers."""
    more = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
    words = b"".join(struct.pack("!I", len(word)) + word.encode() for word in (*_NAMES.split(), *more))
    return words + (_CODES + _VALUES).encode()
