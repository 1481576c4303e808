"""Connections that a joined machine opens: the server reaches the kubelet's port through them, in any number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest
from aiohttp import web

from shoal.agent.kubelet.server_connections import NodeRemovedError, ServerConnections
from shoal.client.clock import WallClock
from shoal.client.http.access import Access
from shoal.client.kubelet.node_joining import REMOVED, connection_path
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.node_connections import NodeConnections

_LARGE = b"x" * 300_000 + b"\n"


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A kubelet that repeats one line, and then closes the connection at once."""
    with suppress(asyncio.IncompleteReadError):
        writer.write(await reader.readuntil(b"\n"))
    writer.close()


class Server:
    def __init__(self) -> None:
        self.connections = NodeConnections(lambda node: node == "n1", patience_s=30.0)
        self.removed = False
        self.port = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        try:
            if self.removed:
                raise ApiError(401, REMOVED, "the node n1 was removed from this cluster by an administrator")
            return await self.connections.serve(request, "n1")
        except ApiError as error:
            body = msgspec.json.encode(error.status())
            return web.Response(status=error.code, body=body, content_type="application/json")


@asynccontextmanager
async def joined() -> AsyncIterator[tuple[Server, asyncio.Task[None]]]:
    """A server, and a machine that is connected to it."""
    server = Server()
    application = web.Application()
    application.add_routes([web.get(connection_path("n1"), server.serve)])
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    access = Access(f"http://127.0.0.1:{runner.addresses[0][1]}", "test")
    kubelet = await asyncio.start_server(_echo, "127.0.0.1", 0, limit=1 << 20)
    port = kubelet.sockets[0].getsockname()[1]
    running = asyncio.ensure_future(ServerConnections(lambda: access, "n1", port, WallClock()).run())
    try:
        await connected(server)
        yield server, running
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, NodeRemovedError):
            await running
        await server.connections.close()
        kubelet.close()
        await runner.cleanup()


async def connected(server: Server) -> int:
    """The port of the kubelet on the server's machine, once the machine is connected."""
    return (await server.connections.kubelet("n1")).port


async def asked(port: int, line: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line)
    found = await reader.read()
    while part := await reader.read():
        found += part
    writer.close()
    return found


async def test_more_connections_than_are_idle_are_used_at_once_and_lose_no_byte() -> None:
    async with joined() as (server, _):
        port = await connected(server)
        lines = [b"%d\n" % number for number in range(40)] + [_LARGE]

        assert await asyncio.gather(*(asked(port, line) for line in lines)) == lines


async def test_a_machine_that_is_not_connected_is_named() -> None:
    connections = NodeConnections(lambda _: True, patience_s=0.0)

    with pytest.raises(ApiError, match='the machine of node "n1" is not connected'):
        await connections.kubelet("n1")


async def test_the_machine_connects_again_after_the_server_closed_its_connections() -> None:
    async with joined() as (server, _):
        await server.connections.end("n1")

        assert await asked(await connected(server), b"again\n") == b"again\n"


async def test_a_removed_machine_learns_it_and_stops_connecting() -> None:
    async with joined() as (server, running):
        server.removed = True
        await server.connections.end("n1")

        with pytest.raises(NodeRemovedError, match="was removed from this cluster"):
            async with asyncio.timeout(30):
                await running
