"""Connections that do not wait for ever: a client has so long to say what it wants.

aiohttp ends connections that were used and then lie idle, and drains those whose answer is made. What it leaves open is
a connection on which a request never comes to its end; a few hundred of those, and the server has no sockets left.
What is no HTTP at all is answered and not worth a story in the log.

What is written to a client that does not read is bounded: the buffers of a connection pause the writer at 64 KiB, and
every large body is written in pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from shoal.client.connection_timeouts import TimedConnection, size_of
from shoal.embedded.apiserver.chunked import PIECE, ChunkedAnswer
from shoal.embedded.apiserver.server.open_responses import OpenResponses


class Patience(msgspec.Struct, frozen=True):
    """How long a client is waited for."""

    first_request_s: float = 30.0
    """From the connection to the end of the first request's headers."""
    reading_s: float = 60.0
    """Until it has read a large answer."""
    most: int = 8192
    """Connections at once; those beyond are closed."""


_PATIENCE = Patience()
USER = web.RequestKey("USER", str)
"""The key of a request under which the user is found whose unread responses are bounded."""
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connection(TimedConnection):
    """One client's."""

    __slots__ = ("_most", "_server")
    timed_from_bytes = PIECE

    def __init__(self, server: Connections, patience: Patience, **options: Any) -> None:
        super().__init__(server, patience.first_request_s, patience.reading_s, **options)
        self._server = server
        self._most = patience.most

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if isinstance(transport, asyncio.WriteTransport):
            transport.set_write_buffer_limits(high=PIECE)
        if len(self._server.connections) > self._most:
            self.force_close()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        size = size_of(resp)
        if size <= PIECE or resp.prepared:
            return await super().finish_response(request, resp, start_time)
        if isinstance(resp, web.Response) and isinstance(resp.body, bytes):
            resp.body = ChunkedAnswer([resp.body], size, resp.headers.get("Content-Type", "application/octet-stream"))
        user = request.get(USER)
        if user is None:
            return await super().finish_response(request, resp, start_time)
        self._server.open_responses.enter_response(user, size)
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._server.open_responses.leave_response(user, size)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        response = web.Response(status=status, text=f"{status} Bad Request", content_type="text/plain")
        response.force_close()
        return response


class Connections(web.Server):
    """Makes one for each client."""

    def __init__(
        self,
        handler: Handler,
        patience: Patience = _PATIENCE,
        open_responses: OpenResponses | None = None,
        **options: Any,
    ) -> None:
        super().__init__(handler, **options)
        self.open_responses = open_responses or OpenResponses()
        self._patience = patience

    def __call__(self) -> RequestHandler:
        waits = self._patience
        loop = asyncio.get_running_loop()
        return Connection(self, waits, loop=loop, access_log=None)
