"""Connects a command that really runs to the channels of an exec request: input, output, terminal size, exit code."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

import msgspec
from aiohttp import WSMsgType, web

from shoal.embedded.apiserver.streams.channels import RequestedChannels, check_upgrade, new_socket, outcome

_STDIN, _OUTCOME, _RESIZE, _CLOSE = 0, b"\x03", 4, 255


class LiveCommand(Protocol):
    async def read(self) -> tuple[int, bytes] | None:
        """The next output with its channel, 1 or 2; None at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def code(self) -> int: ...

    def kill(self) -> None: ...


class _Size(msgspec.Struct):
    width: int = msgspec.field(name="Width")
    height: int = msgspec.field(name="Height")


async def converse(request: web.Request, command: LiveCommand, wanted: RequestedChannels) -> web.WebSocketResponse:
    """The whole conversation. The command is killed if its client goes away."""
    check_upgrade(request)
    socket = new_socket()
    await socket.prepare(request)
    if not wanted.stdin:
        command.end_input()
    listening = asyncio.ensure_future(_listen(socket, command, takes_input=wanted.stdin))
    printing = asyncio.ensure_future(_print(socket, command, wanted))
    try:
        await asyncio.wait((listening, printing), return_when=asyncio.FIRST_COMPLETED)
        if not printing.done():
            return socket
        await printing
        await socket.send_bytes(_OUTCOME + msgspec.json.encode(outcome(await command.code())))
        # While another task receives, `close` does not wait for the client, and the outcome could be lost on the way.
        await _ended(listening)
        await socket.close()
        return socket
    finally:
        command.kill()
        for task in (listening, printing):
            await _ended(task)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, OSError):
        await task


async def _print(socket: web.WebSocketResponse, command: LiveCommand, wanted: RequestedChannels) -> None:
    while (said := await command.read()) is not None:
        channel, data = said
        if wanted.stdout if channel == 1 else wanted.stderr:
            await socket.send_bytes(bytes([channel]) + data)


async def _listen(socket: web.WebSocketResponse, command: LiveCommand, *, takes_input: bool) -> None:
    """Until the client closes the connection."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _STDIN and takes_input:
            await command.write(data)
        elif channel == _CLOSE and data[:1] == b"\x00":
            command.end_input()
        elif channel == _RESIZE:
            with suppress(msgspec.DecodeError):
                size = msgspec.json.decode(data, type=_Size)
                command.resize(size.width, size.height)
