"""Answers of others, read no further than they may be long: theirs is not the memory that they would fill."""

from __future__ import annotations

import aiohttp


class TooLongError(Exception):
    """The response is too large."""


async def read_bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > most:
            # What is still to come is not waited for.
            response.close()
            raise TooLongError(f"the answer is longer than {most} bytes")
        pieces.append(piece)
    return b"".join(pieces)
