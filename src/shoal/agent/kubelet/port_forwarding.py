"""Serves the protocol `portforward.k8s.io` for a pod whose ports are those of this machine.

A client opens two streams for each connection: one for its bytes, one for the words of an error. Both have the number
of the connection and the port in their headers. A container runtime serves the same protocol for its pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from shoal.agent.kubelet.spdy import Data, Frame, FrameReader, FrameWriter, GoAway, Opened, Ping, Reset

PROTOCOL = "portforward.k8s.io"
_HOSTS = ("127.0.0.1", "::1")
_PIECE, _PIECES = 32 * 1024, 16
_MOST = 1024
"""Connections at once."""


class LocalPortForwarding:
    """Implements ByteStream."""

    def __init__(self) -> None:
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._output: asyncio.Queue[bytes] = asyncio.Queue(_PIECES)
        self._errors: dict[str, int] = {}
        """The stream for errors of each connection, until its other stream is opened."""
        self._inputs: dict[int, asyncio.Queue[bytes]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._copies: dict[int, asyncio.Task[str]] = {}

    async def read(self) -> bytes:
        return await self._output.get()

    async def write(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            await self._take(frame)

    def close(self) -> None:
        for task in (*self._tasks.values(), *self._copies.values()):
            task.cancel()

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Opened(stream=stream, headers=headers):
                await self._opened(stream, headers)
            case Data(stream=stream, content=content, is_end=is_end):
                if stream in self._inputs:
                    if content:
                        await self._inputs[stream].put(content)
                    if is_end:
                        await self._inputs[stream].put(b"")
            case Reset(stream=stream):
                if stream in self._copies:
                    self._copies[stream].cancel()
            case Ping(number=number):
                await self._output.put(self._writer.ping(number))
            case GoAway():
                self.close()
                await self._output.put(b"")

    async def _opened(self, stream: int, headers: Mapping[str, str]) -> None:
        number, port = headers.get("requestid", ""), headers.get("port", "")
        kind = headers.get("streamtype", "")
        is_good = port.isdecimal() and 0 < int(port) < 65536 and len(self._tasks) + len(self._errors) < _MOST
        if not is_good or kind not in ("error", "data") or (kind == "data" and number not in self._errors):
            await self._output.put(self._writer.reset(stream))
            return
        await self._output.put(self._writer.accepted(stream))
        if kind == "error":
            self._errors[number] = stream
            return
        self._inputs[stream] = asyncio.Queue(_PIECES)
        self._copies[stream] = asyncio.ensure_future(self._copied(int(port), stream))
        task = self._tasks[stream] = asyncio.ensure_future(self._forward(stream, self._errors.pop(number)))
        task.add_done_callback(lambda _: self._forget(stream))

    def _forget(self, stream: int) -> None:
        del self._tasks[stream], self._copies[stream]
        pieces = self._inputs.pop(stream)
        while not pieces.empty():
            # What waits for room goes on.
            pieces.get_nowait()

    async def _forward(self, stream: int, error: int) -> None:
        copy = self._copies[stream]
        await asyncio.wait((copy,))
        if not copy.cancelled() and copy.result():
            await self._output.put(self._writer.data(error, copy.result().encode()))
        await self._output.put(self._writer.data(stream, b"", is_end=True))
        await self._output.put(self._writer.data(error, b"", is_end=True))

    async def _copied(self, port: int, stream: int) -> str:
        """Both ways until the other side ends; returns the error's words. The client ends it by a reset."""
        try:
            reader, writer = await _connected(port)
        except OSError as failure:
            return f"error forwarding port {port} to the pod: dial tcp 127.0.0.1:{port}: connect: {_reason(failure)}"
        sending = asyncio.ensure_future(_send(self._inputs[stream], writer))
        try:
            with suppress(OSError):
                while data := await reader.read(_PIECE):
                    await self._output.put(self._writer.data(stream, data))
        finally:
            sending.cancel()
            writer.close()
        return ""


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The first failure counts."""
    first: OSError | None = None
    for host in _HOSTS:
        try:
            return await asyncio.open_connection(host, port)
        except OSError as error:
            first = first or error
    raise first or OSError


async def _send(pieces: asyncio.Queue[bytes], writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await pieces.get():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    # A client whose connection is refused here goes on until the other side ends.
    while await pieces.get():
        pass


def _reason(error: OSError) -> str:
    return "connection refused" if isinstance(error, ConnectionRefusedError) else (error.strerror or str(error)).lower()
