"""Long answers go out in pieces and say the same as if they had not."""

from __future__ import annotations

from typing import cast

import pytest
from aiohttp.abc import AbstractStreamWriter

from shoal.embedded.apiserver.chunked import ChunkedAnswer, Items, Part


class _Wire:
    def __init__(self) -> None:
        self.written: list[bytes] = []

    async def write(self, chunk: bytes) -> None:
        self.written.append(bytes(chunk))

    async def drain(self) -> None:
        pass


async def _sent(parts: list[Part]) -> list[bytes]:
    wire = _Wire()
    pieces = ChunkedAnswer(parts, sum(map(len, parts)), "application/json")
    await pieces.write(cast("AbstractStreamWriter", wire))
    return wire.written


async def test_what_goes_out_is_what_the_parts_say_and_as_long_as_was_announced() -> None:
    parts: list[Part] = [b"[", *(memoryview(b"<%06d>" % number) for number in range(100_000)), b"]"]
    whole = b"".join(await _sent(parts))
    pieces = ChunkedAnswer(parts, len(whole), "application/json")
    assert whole == pieces.joined()
    assert pieces.size == len(whole)


@pytest.mark.parametrize("longest", [9_000, 64 * 1024, 64 * 1024 + 1, 1_000_000])
async def test_no_piece_is_longer_than_64_kib_however_long_the_parts_are(longest: int) -> None:
    parts: list[Part] = [b"[", *([b"x" * longest, b","] * 20), b"]"]
    written = await _sent(parts)
    assert b"".join(written) == b"".join(parts)
    assert max(map(len, written)) <= 64 * 1024


async def test_small_parts_are_not_written_one_by_one() -> None:
    assert len(await _sent([b"x" * 100] * 10_000)) < 20


@pytest.mark.parametrize("opening", [b"", b'{"kind":"A",'])
async def test_the_items_of_a_list_are_as_long_as_announced_each_time_they_are_sent(opening: bytes) -> None:
    brace = b"{" if opening else b""
    for number in (0, 1, 3):
        found = [opening + b'"a":%d}' % one for one in range(number)]
        items = Items(b'{"items":[', found, opening)
        whole = b'{"items":[' + b",".join(brace + b'"a":%d}' % one for one in range(number)) + b"]}\n"
        assert [b"".join(items), b"".join(items)] == [whole, whole]
        assert items.size == len(whole)
