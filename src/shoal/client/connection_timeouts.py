"""Closes server connections whose client sends nothing or does not read its answer.

aiohttp closes connections that are idle after a request. It keeps a connection open whose first request never ends, or
whose answer is never read; after some hundreds of these the process has no sockets left for the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.payload import Payload
from aiohttp.web_protocol import RequestHandler

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Timeouts(msgspec.Struct, frozen=True):
    first_request_s: float = 10.0
    """The timeout from the connection to the end of the first request's headers."""
    reading_s: float = 30.0
    """The timeout until an answer is read."""
    most: int = 64
    """The maximum number of concurrent connections; further ones are closed."""


class TimedConnection(RequestHandler):
    """One client's connection, with `first_request_s` for its first request and `reading_s` for reading an answer."""

    __slots__ = ("_alarm", "_first_request_s", "_reading_s")
    timed_from_bytes = 0
    """The answer size from which reading is timed; smaller answers fit into the buffers of the connection."""

    def __init__(self, manager: web.Server, first_request_s: float, reading_s: float, **options: Any) -> None:
        super().__init__(manager, **options)
        self._first_request_s = first_request_s
        self._reading_s = reading_s
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._alarm = asyncio.get_running_loop().call_later(self._first_request_s, self._end_if_silent)

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
        if size_of(resp) < self.timed_from_bytes:
            return await super().finish_response(request, resp, start_time)
        alarm = asyncio.get_running_loop().call_later(self._reading_s, cut_off, self.transport)
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            alarm.cancel()


def size_of(response: web.StreamResponse) -> int:
    body = response.body if isinstance(response, web.Response) else None
    if isinstance(body, Payload):
        # Before it is sent, the response itself has no length.
        return body.size or 0
    return response.content_length or 0


def cut_off(transport: asyncio.Transport | None) -> None:
    """Abort a connection whose client does not read the end of the connection either."""
    if transport is not None:
        transport.abort()


class TimedServer(web.Server):
    """Creates a connection for each client, up to `most`."""

    def __init__(self, handler: Handler, haste: Timeouts, *, ends_with_client: bool = False, **options: Any) -> None:
        """`ends_with_client`: the handler is cancelled when its client closes the connection."""
        super().__init__(handler, handler_cancellation=ends_with_client, **options)
        self.haste = haste
        self._options = options

    def __call__(self) -> RequestHandler:
        return _Counted(self, self.haste, loop=asyncio.get_running_loop(), **self._options)


class _Counted(TimedConnection):
    __slots__ = ("_most", "_server")

    def __init__(self, server: TimedServer, haste: Timeouts, **options: Any) -> None:
        super().__init__(server, haste.first_request_s, haste.reading_s, **options)
        self._server = server
        self._most = haste.most

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self._server.connections) > self._most:
            self.force_close()
