"""Connections to ports of a process pod are streams of SPDY, as kubectl opens them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from build.free_ports import free_port
from shoal.agent.kubelet.port_forwarding import LocalPortForwarding
from shoal.agent.kubelet.spdy import Data, FrameReader, FrameWriter, Ping, Reset


class Client:
    """The side of kubectl."""

    def __init__(self) -> None:
        self.ports = LocalPortForwarding()
        self.frames, self._reader = FrameWriter(), FrameReader()
        self.received: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.reset: set[int] = set()
        self.pings: list[int] = []

    async def open(self, kind: str, stream: int, port: str, number: str = "0") -> None:
        headers = {"streamType": kind, "port": port, "requestID": number}
        await self.ports.write(self.frames.opened(stream, headers))

    async def connect(self, port: int, first: int = 1) -> None:
        await self.open("error", first, str(port), str(first))
        await self.open("data", first + 2, str(port), str(first))

    async def until_ended(self, *streams: int) -> None:
        while not {*streams} <= self.ended | self.reset:
            for frame in self._reader.feed(await self.ports.read()):
                match frame:
                    case Data(stream=stream, content=content, is_end=is_end):
                        self.received[stream] = self.received.get(stream, b"") + content
                        self.ended |= {stream} if is_end else set()
                    case Reset(stream=stream):
                        self.reset.add(stream)
                    case Ping(number=number):
                        self.pings.append(number)


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A server that returns what it got, at its end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_bytes_go_both_ways_and_both_streams_end() -> None:
    async with echo() as port:
        client = Client()
        await client.connect(port)
        await client.ports.write(client.frames.data(3, b"hello "))
        await client.ports.write(client.frames.data(3, b"there", is_end=True))

        await client.until_ended(1, 3)

    assert client.received == {1: b"", 3: b"hello there"}


async def test_two_connections_do_not_wait_for_each_other() -> None:
    async with echo() as port:
        client = Client()
        await client.connect(port)
        await client.connect(port, first=5)
        await client.ports.write(client.frames.data(7, b"second", is_end=True))
        await client.until_ended(5, 7)
        await client.ports.write(client.frames.data(3, b"first", is_end=True))
        await client.until_ended(1, 3)

    assert (client.received[3], client.received[7]) == (b"first", b"second")


async def test_a_port_on_which_nothing_listens_is_an_error() -> None:
    client, port = Client(), free_port()
    await client.connect(port)

    await client.until_ended(1, 3)

    words = f"error forwarding port {port} to the pod: dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert client.received == {1: words.encode(), 3: b""}


async def test_a_client_that_resets_a_stream_has_the_end_of_both() -> None:
    async with echo() as port:
        client = Client()
        await client.connect(port)
        await client.ports.write(client.frames.reset(3))

        await client.until_ended(1, 3)

    assert client.received == {1: b"", 3: b""}


async def test_streams_without_a_port_or_a_partner_are_reset() -> None:
    client = Client()
    await client.open("error", 1, "none")
    await client.open("data", 3, "80")
    await client.open("other", 5, "80")

    await client.until_ended(1, 3, 5)

    assert client.reset == {1, 3, 5}


async def test_pings_are_answered() -> None:
    client = Client()
    await client.ports.write(client.frames.ping(7))
    await client.open("other", 1, "80")

    await client.until_ended(1)

    assert client.pings == [7]
