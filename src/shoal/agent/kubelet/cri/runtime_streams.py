"""Opens connections to the addresses that a runtime names for streams of commands and of ports."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

_OPEN_S = 10.0
_PIECE = 32 * 1024


async def opened_streams(url: str, protocol: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which frames of SPDY follow. Raises OSError if the runtime does not open it."""
    parts, port = _address(url)
    async with asyncio.timeout(_OPEN_S):
        reader, writer = await asyncio.open_connection(
            parts.hostname or "127.0.0.1", port, ssl=_unverified() if parts.scheme == "https" else None
        )
        try:
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
            lines = [f"POST {path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: Upgrade", "Upgrade: SPDY/3.1"]
            lines += [f"X-Stream-Protocol-Version: {protocol}", "Content-Length: 0"]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            words = head.split(b"\r\n", 1)[0].decode(errors="replace")
            if " 101 " not in f"{words} ":
                raise ConnectionError(words)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise ConnectionError("the connection was closed") from error
        except BaseException:
            writer.close()
            raise
    return reader, writer


class RuntimeStream:
    """Implements ByteStream: the bytes of a connection to the runtime."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        with suppress(OSError):
            return await self._reader.read(_PIECE)
        return b""

    async def write(self, data: bytes) -> None:
        with suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


def _address(url: str) -> tuple[SplitResult, int]:
    """Raises OSError for an address that cannot be used."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConnectionError(f"{url!r} is no address: {error}") from None
    if port is None:
        raise ConnectionError(f"{url!r} has no port")
    return parts, port


def _unverified() -> ssl.SSLContext:
    """The address has a token, and is on this machine."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
