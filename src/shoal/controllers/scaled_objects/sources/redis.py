"""Asks a Redis server for the length of a value, or for the entries of a stream, in its own protocol.

One connection per question. Rejected: a client library. Seven commands need none, and a library resolves and asks
addresses by itself.
"""

from __future__ import annotations

import asyncio

from shoal.autoscale.scaled_objects.trigger_metadata import USUAL_TIMEOUT_S
from shoal.autoscale.scaled_objects.trigger_sources import RedisList, RedisServer, RedisStream
from shoal.controllers.scaled_objects.sources.connections import Connections, asking, failed

_LENGTHS = {"list": "LLEN", "set": "SCARD", "zset": "ZCARD", "hash": "HLEN"}
_MOST_ITEMS = 100_000
_DEEPEST = 8
Answer = str | int | list["Answer"] | None


async def redis_value(
    connections: Connections, asked: RedisList | RedisStream, timeout_s: float = USUAL_TIMEOUT_S
) -> int:
    """A name without a value has the length 0. Raises TemporaryError, which names the server, never the credentials."""
    server = asked.server
    words = _words(server)
    async with (
        asking(words, timeout_s),
        connections.opened(server.host, server.port, server.tls) as (reader, writer),
    ):
        connection = RedisConnection(words, reader, writer)
        if server.password:
            await connection.ask("AUTH", *([server.username] if server.username else []), server.password)
        if server.database:
            await connection.ask("SELECT", str(server.database))
        kind = str(await connection.ask("TYPE", asked.name))
        if kind == "none":
            return 0
        if isinstance(asked, RedisStream):
            return await _of_stream(connection, asked, kind)
        if kind not in _LENGTHS:
            raise failed(words, f"{asked.name} is a {kind}, which has no length")
        return _number(words, await connection.ask(_LENGTHS[kind], asked.name))


async def _of_stream(connection: RedisConnection, asked: RedisStream, kind: str) -> int:
    words = _words(asked.server)
    if kind != "stream":
        raise failed(words, f"{asked.name} is a {kind}, not a stream")
    if not asked.group:
        return _number(words, await connection.ask("XLEN", asked.name))
    groups = await connection.ask("XINFO", "GROUPS", asked.name)
    for one in groups if isinstance(groups, list) else ():
        fields = dict(zip(one[::2], one[1::2], strict=False)) if isinstance(one, list) else {}
        if fields.get("name") == asked.group:
            if not asked.reads_lag:
                return _number(words, fields.get("pending"))
            if fields.get("lag") is None:
                raise failed(words, f"the lag of group {asked.group} is not known; Redis 7 or newer reports it")
            return _number(words, fields["lag"])
    raise failed(words, f"stream {asked.name} has no consumer group {asked.group}")


class RedisConnection:
    def __init__(self, server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer

    async def ask(self, *words: str) -> Answer:
        parts = [word.encode() for word in words]
        self._writer.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in parts))
        await self._writer.drain()
        return await self._answer(words[0], 0)

    async def _answer(self, command: str, depth: int) -> Answer:
        line = (await self._reader.readuntil(b"\r\n"))[:-2].decode(errors="replace")
        mark, text = line[:1], line[1:]
        if mark == "+":
            return text
        if mark == ":":
            return int(text)
        if mark == "-":
            # Only the code: the rest of the text may repeat what was sent.
            code = text.partition(" ")[0]
            raise failed(self._server, f"{command} was answered with {code if code.isupper() else 'an error'}")
        if mark not in ("$", "*") or depth > _DEEPEST:
            raise failed(self._server, "it gave an unknown answer")
        size = int(text)
        if size < 0:
            return None
        if size > _MOST_ITEMS:
            raise failed(self._server, "its answer is too long")
        if mark == "$":
            return (await self._reader.readexactly(size + 2))[:-2].decode(errors="replace")
        return [await self._answer(command, depth + 1) for _ in range(size)]


def _number(server: str, answer: Answer) -> int:
    if not isinstance(answer, int):
        raise failed(server, "it gave an unknown answer")
    return answer


def _words(server: RedisServer) -> str:
    return f"redis at {server.host}:{server.port}"
