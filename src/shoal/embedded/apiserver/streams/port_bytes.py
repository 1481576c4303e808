"""Passes the bytes of forwarded ports through a WebSocket: frames of SPDY 3.1, as kubectl sends them.

Rejected: an upgrade of the HTTP connection to SPDY itself, which earlier versions of kubectl use. Proxies refuse it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from aiohttp import WSMsgType, web

from shoal.embedded.apiserver.streams.channels import new_socket
from shoal.embedded.apiserver.streams.sending import cut_off_if_stalled

PORTS_PROTOCOL = "SPDY/3.1+portforward.k8s.io"


class _Bytes(Protocol):
    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


async def pass_bytes(request: web.BaseRequest, ports: _Bytes) -> web.WebSocketResponse:
    """Until one side ends."""
    socket = new_socket((PORTS_PROTOCOL,))
    try:
        await socket.prepare(request)
        sending = asyncio.ensure_future(_sent(request, socket, ports))
        try:
            async for message in socket:
                if message.type is WSMsgType.BINARY:
                    await ports.write(message.data)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return socket
    finally:
        ports.close()


async def _sent(request: web.BaseRequest, socket: web.WebSocketResponse, ports: _Bytes) -> None:
    with suppress(ConnectionError):
        while data := await ports.read():
            with cut_off_if_stalled(request.transport):
                await socket.send_bytes(data)
        await socket.close()
