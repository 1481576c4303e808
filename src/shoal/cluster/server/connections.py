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
from aiohttp.web_protocol import RequestHandler

from shoal.telemetry.hurried import Hurried


class Patience(msgspec.Struct, frozen=True):
    """How long a client is waited for."""

    first_request_s: float = 30.0
    """From the connection to the end of the first request's headers."""
    reading_s: float = 60.0
    """Until it has read a large answer."""


_PATIENCE = Patience()
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connection(Hurried):
    """One client's."""

    __slots__ = ()
    timed_from_bytes = 1 << 16

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

    def __init__(self, handler: Handler, patience: Patience = _PATIENCE, **options: Any) -> None:
        super().__init__(handler, **options)
        self._patience = patience

    def __call__(self) -> RequestHandler:
        waits = self._patience
        loop = asyncio.get_running_loop()
        return Connection(self, waits.first_request_s, waits.reading_s, loop=loop, access_log=None)
