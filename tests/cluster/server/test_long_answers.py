"""Long answers go out in pieces and say the same as if they had not."""

from __future__ import annotations

from typing import cast

from aiohttp.abc import AbstractStreamWriter

from shoal.cluster.server.pieces import Part, Pieces


class _Wire:
    def __init__(self) -> None:
        self.written: list[bytes] = []

    async def write(self, chunk: bytes) -> None:
        self.written.append(chunk)


async def _sent(parts: list[Part]) -> list[bytes]:
    wire = _Wire()
    pieces = Pieces(parts, sum(map(len, parts)), "application/json")
    await pieces.write(cast("AbstractStreamWriter", wire))
    return wire.written


async def test_what_goes_out_is_what_the_parts_say_and_as_long_as_was_announced() -> None:
    parts: list[Part] = [b"[", *(memoryview(b"<%06d>" % number) for number in range(100_000)), b"]"]
    whole = b"".join(await _sent(parts))
    pieces = Pieces(parts, len(whole), "application/json")
    assert whole == pieces.joined()
    assert pieces.size == len(whole)


async def test_no_piece_is_longer_than_what_one_part_adds_to_a_full_one() -> None:
    longest = 9_000
    written = await _sent([b"x" * longest] * 200)
    assert len(written) > 10
    assert max(map(len, written)) < 128 * 1024 + longest


async def test_small_parts_are_not_written_one_by_one() -> None:
    assert len(await _sent([b"x" * 100] * 10_000)) < 12
