"""Connections that do not wait for ever: a client has so long to say what it wants.

aiohttp ends connections that were used and then lie idle, and drains those whose answer is made. What it leaves open is
a connection on which a request never comes to its end; a few hundred of those, and the server has no sockets left.
What is no HTTP at all is answered and not worth a story in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.payload import Payload
from aiohttp.web_protocol import RequestHandler

_LARGE_BYTES = 1 << 16
"""What is smaller goes into the buffers of the connection at once."""


class Patience(msgspec.Struct, frozen=True):
    """How long a client is waited for."""

    first_request_s: float = 30.0
    """From the connection to the end of the first request's headers."""
    reading_s: float = 60.0
    """Until it has read a large answer."""


_PATIENCE = Patience()
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def cut_off(transport: asyncio.Transport | None) -> None:
    """The end of a connection whose client does not even read that it ends."""
    if transport is not None:
        transport.abort()


class Connection(RequestHandler):
    """One client's."""

    __slots__ = ("_alarm", "_patience")

    def __init__(self, manager: web.Server, patience: Patience, **options: Any) -> None:
        super().__init__(manager, **options)
        self._patience = patience
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._alarm = asyncio.get_running_loop().call_later(self._patience.first_request_s, self._end_if_silent)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        super().connection_lost(exc)

    def _end_if_silent(self) -> None:
        if self._request_count == 0:
            self.force_close()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        if _size(resp) < _LARGE_BYTES:
            return await super().finish_response(request, resp, start_time)
        alarm = asyncio.get_running_loop().call_later(self._patience.reading_s, cut_off, self.transport)
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            alarm.cancel()

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


def _size(response: web.StreamResponse) -> int:
    body = response.body if isinstance(response, web.Response) else None
    if isinstance(body, Payload):
        # Until it is sent the response itself does not say.
        return body.size or 0
    return response.content_length or 0


class Connections(web.Server):
    """Makes one for each client."""

    def __init__(self, handler: Handler, patience: Patience = _PATIENCE, **options: Any) -> None:
        super().__init__(handler, **options)
        self._patience = patience

    def __call__(self) -> RequestHandler:
        return Connection(self, self._patience, loop=asyncio.get_running_loop(), access_log=None)
