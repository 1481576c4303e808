"""Asks a RabbitMQ server for the messages that are ready in a queue, by AMQP 0-9-1.

A queue is declared passively: that reports its counts and creates nothing. Rejected: a client library. Five methods
need none, and a library resolves and asks addresses by itself.
"""

from __future__ import annotations

import asyncio
import struct

from shoal.autoscale.scaled_objects.trigger_metadata import USUAL_TIMEOUT_S
from shoal.autoscale.scaled_objects.trigger_sources import AmqpQueue
from shoal.controllers.scaled_objects.sources.connections import Connections, asking, failed

_METHOD, _HEARTBEAT, _END = 1, 8, 0xCE
_LONGEST_FRAME = 1 << 20
_START, _START_OK, _TUNE, _TUNE_OK = (10, 10), (10, 11), (10, 30), (10, 31)
_OPEN, _OPEN_OK, _CLOSE = (10, 40), (10, 41), (10, 50)
_CHANNEL_OPEN, _CHANNEL_OPEN_OK, _CHANNEL_CLOSE = (20, 10), (20, 11), (20, 40)
_DECLARE, _DECLARE_OK = (50, 10), (50, 11)
_PASSIVE = 1
_REASONS = {
    403: "the credentials or the access are refused",
    404: "the queue does not exist",
    530: "the virtual host is not accessible",
}
Method = tuple[int, int]


async def ready_messages(connections: Connections, asked: AmqpQueue, timeout_s: float = USUAL_TIMEOUT_S) -> int:
    """Raises TemporaryError, which names the server, never the credentials."""
    server = f"rabbitmq at {asked.host}:{asked.port}"
    async with (
        asking(server, timeout_s),
        connections.opened(asked.host, asked.port, asked.tls) as (reader, writer),
    ):
        connection = _AmqpConnection(server, reader, writer)
        writer.write(b"AMQP\x00\x00\x09\x01")
        await connection.expect(_START)
        plain = f"\0{asked.username}\0{asked.password}".encode()
        connection.send(0, _START_OK, _PROPERTIES + _short("PLAIN") + _long(plain) + _short("en_US"))
        limits = await connection.expect(_TUNE)
        connection.send(0, _TUNE_OK, limits)
        connection.send(0, _OPEN, _short(asked.virtual_host) + _short("") + b"\0")
        await connection.expect(_OPEN_OK)
        connection.send(1, _CHANNEL_OPEN, _short(""))
        await connection.expect(_CHANNEL_OPEN_OK)
        connection.send(1, _DECLARE, b"\0\0" + _short(asked.queue) + bytes([_PASSIVE]) + _table())
        answer = await connection.expect(_DECLARE_OK)
        (messages,) = struct.unpack_from(">I", answer, 1 + answer[0])
        connection.send(0, _CLOSE, struct.pack(">H", 200) + _short("") + b"\0\0\0\0")
        return int(messages)


class _AmqpConnection:
    def __init__(self, server: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer

    def send(self, channel: int, method: Method, arguments: bytes) -> None:
        payload = struct.pack(">HH", *method) + arguments
        self._writer.write(struct.pack(">BHI", _METHOD, channel, len(payload)) + payload + bytes([_END]))

    async def expect(self, wanted: Method) -> bytes:
        """The arguments of the method. Raises TemporaryError if the server answers with another one."""
        await self._writer.drain()
        while True:
            kind, _, size = struct.unpack(">BHI", await self._reader.readexactly(7))
            if size > _LONGEST_FRAME or kind not in (_METHOD, _HEARTBEAT):
                raise failed(self._server, "it does not speak AMQP 0-9-1")
            payload = await self._reader.readexactly(size + 1)
            if payload[-1] != _END:
                raise failed(self._server, "it does not speak AMQP 0-9-1")
            if kind == _HEARTBEAT:
                continue
            method = struct.unpack_from(">HH", payload)
            if method == wanted:
                return payload[4:-1]
            if method in (_CLOSE, _CHANNEL_CLOSE):
                (code,) = struct.unpack_from(">H", payload, 4)
                raise failed(self._server, _REASONS.get(code, f"it answered with the code {code}"))
            raise failed(self._server, f"it answered with the method {method[0]}.{method[1]}")


def _short(text: str) -> bytes:
    """Raises ValueError if the text is too long."""
    written = text.encode()
    return bytes([len(written)]) + written


def _long(written: bytes) -> bytes:
    return struct.pack(">I", len(written)) + written


def _table(fields: bytes = b"") -> bytes:
    return _long(fields)


_PROPERTIES = _table(_short("capabilities") + b"F" + _table(_short("authentication_failure_close") + b"t\1"))
"""Without it, the server refuses credentials by closing the connection seconds later."""
