"""Sends a response piece by piece, and disconnects a client that does not read for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from shoal.client.connection_timeouts import cut_off
from shoal.embedded.apiserver.chunked import slices

STALLED_S = 30.0
"""How long one piece may take to be accepted."""


async def send(
    request: web.BaseRequest, response: web.StreamResponse, chunk: bytes, stalled_s: float = STALLED_S
) -> None:
    """Write a chunk, a piece at a time; the connection ends if one piece is not accepted in time."""
    for piece in slices(chunk):
        with cut_off_if_stalled(request.transport, stalled_s):
            await response.write(piece)
            # A response of aiohttp waits by itself only after more than 64 KiB.
            await request.writer.drain()


@contextmanager
def cut_off_if_stalled(transport: asyncio.Transport | None, stalled_s: float = STALLED_S) -> Iterator[None]:
    """What is done inside is waiting for the client."""
    alarm = asyncio.get_running_loop().call_later(stalled_s, cut_off, transport)
    try:
        yield
    finally:
        alarm.cancel()
