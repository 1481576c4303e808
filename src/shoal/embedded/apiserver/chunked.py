"""A long answer that goes out piece by piece, no faster than the client takes it.

Written in one go, a list of ten thousand pods would be there three times: as objects, as a body and, until the
connection closes, as ciphertext in the memory that TLS keeps for it. No piece is longer than 64 KiB, so that a client
that does not read has a few pieces in the buffers of its connection, however long a single object is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

Part = bytes | memoryview
AT_LEAST = 256 * 1024
"""Bytes from which on this is worth while."""
PIECE = 64 * 1024
_END = b"]}\n"


class Items:
    """The parts of a list of stored objects, made when they are sent: those of ten thousand objects are two megabytes
    that a client which does not read would keep."""

    def __init__(self, head: bytes, found: Sequence[bytes], opening: bytes) -> None:
        """`opening`: with what all begin, and what a brace represents in the list."""
        self._head = head
        self._found = found
        self._cut = len(opening)
        brace = 1 if opening else 0
        commas = max(0, len(found) - 1)
        self.size = len(head) + sum(map(len, found)) + len(found) * (brace - self._cut) + commas + len(_END)

    def __iter__(self) -> Iterator[Part]:
        yield self._head
        before = b"{" if self._cut else b""
        for data in self._found:
            yield before
            yield memoryview(data)[self._cut :]
            before = b",{" if self._cut else b","
        yield _END


class ChunkedAnswer(Payload):
    """The parts of a body, in order. Joined in pieces: a write of its own for each object would cost more."""

    def __init__(self, parts: Iterable[Part], size: int, content_type: str) -> None:
        """`parts` can be gone through more than once."""
        super().__init__(parts, content_type=content_type)
        self._parts = parts
        self._size = size

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.joined().decode(encoding, errors)

    def joined(self) -> bytes:
        return b"".join(self._parts)

    async def write(self, writer: AbstractStreamWriter) -> None:
        piece: list[Part] = []
        size = 0
        for part in self._parts:
            if size + len(part) > PIECE:
                await _written(writer, b"".join(piece))
                piece, size = [], 0
                if len(part) > PIECE:
                    for slice_ in slices(part):
                        await _written(writer, slice_)
                    continue
            piece.append(part)
            size += len(part)
        await _written(writer, b"".join(piece))


async def _written(writer: AbstractStreamWriter, piece: Part) -> None:
    await writer.write(piece)
    # A writer of aiohttp waits by itself only after more than 64 KiB.
    await writer.drain()


def slices(part: Part) -> Iterator[memoryview]:
    """A long part, piece by piece and not copied."""
    view = memoryview(part)
    for start in range(0, len(view), PIECE):
        yield view[start : start + PIECE]
