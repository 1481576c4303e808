"""Fetches a text from an HTTP server that is no API server: an exporter, a Prometheus, an Alertmanager.

Guarantees: no redirect is followed, and a long answer is cut off with an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

_MOST_BYTES = 32 << 20
_OK = 200


class StatusError(OSError):
    """The server answered with another status than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


async def fetched_text(session: aiohttp.ClientSession, address: str) -> str:
    """The text at an address. Raises OSError or TimeoutError."""
    import aiohttp

    try:
        async with session.get(address, allow_redirects=False) as answer:
            if answer.status != _OK:
                raise StatusError(answer.status)
            found = bytearray()
            async for part in answer.content.iter_chunked(1 << 16):
                found += part
                if len(found) > _MOST_BYTES:
                    raise OSError("the answer is too long")
            return found.decode(errors="replace")
    except aiohttp.ClientError as error:
        raise OSError(str(error)) from error
