"""A command in a container whose input, output and terminal are streams of a connection to the runtime.

The runtime names an address of this machine for each command. The command starts when the streams are opened, and the
runtime ends it when the connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from shoal.agent.kubelet.cri.runtime_streams import opened_streams
from shoal.agent.kubelet.spdy import Data, FrameReader, FrameWriter, GoAway, Ping, Reset

_CHUNK = 32 * 1024
_MOST_STATUS = 64 * 1024
_PROTOCOL = "v4.channel.k8s.io"
_WITHOUT_CODE = 1


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Outcome(msgspec.Struct):
    """How the command ended, as the runtime says it on the stream `error`."""

    status: str = ""
    message: str = ""
    details: _Details | None = None

    def code(self) -> int | None:
        """The exit code of a command that failed."""
        causes = self.details.causes if self.details is not None else []
        found = next((one.message for one in causes if one.reason == "ExitCode"), "")
        return int(found) if found.isdecimal() else None


async def streamed_command(url: str, *, tty: bool, has_input: bool = True) -> StreamedCommand:
    """Raises OSError if the runtime does not open the streams."""
    reader, writer = await opened_streams(url, _PROTOCOL)
    return StreamedCommand(reader, writer, tty=tty, has_input=has_input)


class StreamedCommand:
    """Implements Command."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, tty: bool, has_input: bool
    ) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameWriter()
        given = ("stdin",) if has_input else ()
        names = ("error", *given, "stdout", *(("resize",) if tty else ("stderr",)))
        self._streams = dict(zip(names, range(1, 2 * len(names), 2), strict=True))
        self._outputs = {self._streams[name]: number for name, number in (("stdout", 1), ("stderr", 2))
                         if name in self._streams}  # fmt: skip
        self._open = {self._streams["error"], *self._outputs}
        self._said: list[bytes] = []
        self._output: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(16)
        for name, stream in self._streams.items():
            writer.write(self._frames.opened(stream, {"streamtype": name}))
        self._following = asyncio.ensure_future(self._follow())

    async def read(self) -> tuple[int, bytes] | None:
        return await self._output.get()

    async def write(self, data: bytes) -> None:
        if "stdin" not in self._streams:
            return
        with suppress(OSError):
            for start in range(0, len(data), _CHUNK):
                self._writer.write(self._frames.data(self._streams["stdin"], data[start : start + _CHUNK]))
            await self._writer.drain()

    def end_input(self) -> None:
        if "stdin" in self._streams:
            self._writer.write(self._frames.data(self._streams["stdin"], b"", is_end=True))

    def resize(self, columns: int, rows: int) -> None:
        if "resize" in self._streams:
            size = msgspec.json.encode({"Width": columns, "Height": rows})
            self._writer.write(self._frames.data(self._streams["resize"], size + b"\n"))

    async def code(self) -> int:
        await asyncio.wait((self._following,))
        status = self._outcome()
        if status.status == "Success":
            return 0
        return _WITHOUT_CODE if (code := status.code()) is None else code

    def kill(self) -> None:
        self._following.cancel()
        self._writer.close()

    async def _follow(self) -> None:
        """Until every output and the stream of the outcome have ended, or the connection has."""
        frames = FrameReader()
        with suppress(OSError):
            while self._open and (data := await self._reader.read(_CHUNK)):
                for frame in frames.feed(data):
                    await self._take(frame)
        for message in self._complaint():
            await self._output.put((2, message))
        await self._output.put(None)

    async def _take(self, frame: Any) -> None:
        match frame:
            case Data(stream=stream, content=content, is_end=is_end):
                if content and stream in self._outputs:
                    await self._output.put((self._outputs[stream], content))
                elif content and stream == self._streams["error"] and sum(map(len, self._said)) < _MOST_STATUS:
                    self._said.append(content)
                if is_end:
                    self._open.discard(stream)
            case Reset(stream=stream):
                self._open.discard(stream)
            case Ping(number=number):
                self._writer.write(self._frames.ping(number))
            case GoAway():
                self._open.clear()

    def _outcome(self) -> _Outcome:
        try:
            return msgspec.json.decode(b"".join(self._said), type=_Outcome)
        except msgspec.DecodeError:
            return _Outcome()

    def _complaint(self) -> Iterator[bytes]:
        """Why the command did not start, which only the outcome says; or that there is none."""
        status = self._outcome()
        if not status.status:
            yield b"the connection to the container runtime ended before the command\n"
        if status.status == "Failure" and status.code() is None:
            yield f"{status.message}\n".encode()
