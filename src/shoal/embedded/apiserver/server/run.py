"""Serves one control plane until it is stopped.

The socket is bound first, so that a busy port is found out before anything is written, and so that port 0 is known when
certificates and the kubeconfig are made.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from shoal.client.broken_connections import log_in_one_line
from shoal.client.clock import Clock, WallClock
from shoal.embedded.apiserver.security.kubeconfig import write_kubeconfig
from shoal.embedded.apiserver.server.bound_socket import bind
from shoal.embedded.apiserver.server.connections import Connections
from shoal.embedded.apiserver.server.control_plane import ControlPlane, open_plane
from shoal.embedded.apiserver.server.receiving import LARGEST_BODY
from shoal.embedded.apiserver.settings import Settings

_BACKLOG = 1024
_HANDSHAKE_S = 10.0
"""Until a client has begun to speak TLS and is done with it."""
_PATIENCE_S = 1.0
"""How long open requests get to end after the signal to stop; watches are closed at once."""


Stop = Callable[[], None]
Beside = Callable[[ControlPlane, str, Stop], AbstractAsyncContextManager[None]]
"""What lives with the server, in its loop: entered once requests are answered (at this URL), left before they no longer
are. Calling the last argument ends the server."""


@asynccontextmanager
async def alone(_: ControlPlane, __: str, ___: Stop) -> AsyncIterator[None]:
    yield


def serve(
    settings: Settings,
    ready: Callable[[str], None],
    beside: Beside = alone,
    make_clock: Callable[[], Clock] | None = None,
) -> None:
    """Blocks until SIGINT or SIGTERM. Calls `ready` with the URL once it serves requests and `beside` is set up."""

    async def main() -> None:
        bound = bind(settings.host, settings.port)
        try:
            clock = make_clock() if make_clock is not None else WallClock()
            await _serve_on(bound, settings, ready, beside, clock)
        finally:
            bound.close()

    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())


async def _serve_on(
    bound: socket.socket, settings: Settings, ready: Callable[[str], None], beside: Beside, clock: Clock
) -> None:
    """Whatever ends this, also before requests are answered, ends the control plane in order."""
    stop = _stop_signal()
    log_in_one_line(asyncio.get_running_loop())
    # Nearly all that a start makes stays: looking for garbage in it at the usual pace is a tenth of a start.
    gc.set_threshold(50_000, 20, 50)
    async with contextlib.AsyncExitStack() as ends:
        plane = await open_plane(settings, (settings.host, bound.getsockname()[1]), clock=clock)
        ends.push_async_callback(plane.close)
        server = _server(plane)
        listener = await listening(server, bound, plane.authority.server_context())
        ends.push_async_callback(_end, plane, server, listener)
        url = _url(settings.host, bound)
        write_kubeconfig(settings.kubeconfig, url, plane.authority)
        await ends.enter_async_context(beside(plane, url, stop.set))
        # What is there now stays; later collections need not walk it.
        gc.collect()
        gc.freeze()
        if not stop.is_set():
            ready(url)
        await stop.wait()


async def listening(
    server: Connections, bound: socket.socket, context: ssl.SSLContext, handshake_s: float = _HANDSHAKE_S
) -> asyncio.Server:
    """A client that does not begin TLS in that time is cut off."""
    return await asyncio.get_running_loop().create_server(
        server, sock=bound, ssl=context, ssl_handshake_timeout=handshake_s, backlog=_BACKLOG
    )


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    return stop


def _server(plane: ControlPlane) -> Connections:
    loop = asyncio.get_running_loop()

    def request(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY + 1)

    # Cancelling: a watch of something quiet would not notice otherwise that its client has gone.
    return Connections(
        plane.request_handler.handle,
        open_responses=plane.request_handler.open_responses,
        request_factory=request,
        handler_cancellation=True,
    )


async def _end(plane: ControlPlane, server: Connections, listener: asyncio.Server) -> None:
    listener.close()
    # Watches end by themselves when no more events can come.
    plane.request_handler.end_watches()
    # Idle connections would be waited for as long as busy ones.
    server.pre_shutdown()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(server.shutdown(_PATIENCE_S), _PATIENCE_S + 1)


def _url(host: str, bound: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}:{bound.getsockname()[1]}"
