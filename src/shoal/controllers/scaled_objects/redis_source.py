"""Asks a Redis server for the length of a list, set, sorted set or hash, in its own protocol.

One connection per question, bounded in time. Rejected: a client library. Four commands need none, and a library would
be a dependency of every installation.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

from shoal.autoscale.scaled_objects.triggers import RedisList
from shoal.units.errors import TemporaryError

_LENGTHS = {"list": "LLEN", "set": "SCARD", "zset": "ZCARD", "hash": "HLEN"}
_LONGEST_LINE = 64 * 1024


async def redis_length(asked: RedisList, timeout_s: float = 3.0) -> int:
    """A name without a value has the length 0. Raises TemporaryError, which names the server, never the credentials."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _asked(asked)
    except TimeoutError:
        raise _failed(asked, f"it did not answer in {timeout_s:g} s") from None
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise _failed(asked, f"{type(error).__name__}: {error}") from None


async def _asked(asked: RedisList) -> int:
    reader, writer = await asyncio.open_connection(
        asked.host, asked.port, ssl=_tls(asked) if asked.has_tls else None, limit=_LONGEST_LINE
    )
    try:
        connection = _RedisConnection(asked, reader, writer)
        if asked.password:
            await connection.ask("AUTH", *([asked.username] if asked.username else []), asked.password)
        if asked.database:
            await connection.ask("SELECT", str(asked.database))
        kind = str(await connection.ask("TYPE", asked.name))
        if kind == "none":
            return 0
        if kind not in _LENGTHS:
            raise _failed(asked, f"{asked.name} is a {kind}, which has no length")
        return int(await connection.ask(_LENGTHS[kind], asked.name))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class _RedisConnection:
    def __init__(self, asked: RedisList, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asked, self._reader, self._writer = asked, reader, writer

    async def ask(self, *words: str) -> str | int:
        """A command whose answer is one line."""
        parts = [word.encode() for word in words]
        self._writer.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in parts))
        await self._writer.drain()
        line = (await self._reader.readuntil(b"\r\n"))[:-2].decode(errors="replace")
        mark, answer = line[:1], line[1:]
        if mark == "+":
            return answer
        if mark == ":":
            return int(answer)
        raise _failed(self._asked, f"{words[0]} was answered with {answer}" if mark == "-" else "an unknown answer")


def _tls(asked: RedisList) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if asked.is_unsafe:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _failed(asked: RedisList, words: str) -> TemporaryError:
    return TemporaryError(f"redis at {asked.host}:{asked.port} cannot be asked: {words}", 1.0)
