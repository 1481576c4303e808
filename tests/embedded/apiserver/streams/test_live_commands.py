"""The conversation about a command that runs in a process: its end reaches a client that is slow to answer."""

from __future__ import annotations

import asyncio
import base64

from aiohttp import web

from shoal.embedded.apiserver.streams.channels import PROTOCOLS, RequestedChannels
from shoal.embedded.apiserver.streams.live_command import converse

_CLOSE_OF_CLIENT = bytes([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8])
"""A masked close frame with the code 1000."""


class _Quick:
    """A command that prints nothing and has ended well."""

    async def read(self) -> tuple[int, bytes] | None:
        return None

    async def write(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def code(self) -> int:
        return 0

    def kill(self) -> None: ...


async def _served() -> tuple[web.AppRunner, int]:
    async def command(request: web.Request) -> web.StreamResponse:
        return await converse(request, _Quick(), RequestedChannels(stdout=True))

    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text="page")

    application = web.Application()
    application.add_routes([web.get("/exec", command), web.get("/page", page)])
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, int(runner.addresses[0][1])


async def _page(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    found = await reader.read()
    writer.close()
    return found


async def test_the_connection_stays_open_until_the_client_has_read_the_outcome() -> None:
    runner, port = await _served()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(b"0123456789abcdef").decode()
        lines = ["GET /exec HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Protocol: {PROTOCOLS[0]}"]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await reader.readuntil(b"\r\n\r\n")
        outcome = await reader.readexactly(2)
        assert b"Success" in await reader.readexactly(outcome[1])
        closing = await reader.readexactly(2)
        assert closing[0] == 0x88
        await reader.readexactly(closing[1])

        ending = asyncio.ensure_future(reader.read())
        for _ in range(3):
            assert await _page(port)
        is_open = not ending.done()
        writer.write(_CLOSE_OF_CLIENT)

        assert is_open
        assert await ending == b""
    finally:
        await runner.cleanup()
