"""Sends one request after the other over one HTTP/1.1 connection, and reads each answer completely.

Writes are small and frequent: a binding has three hundred bytes, and five thousand of them in two seconds are common.
aiohttp takes a fifth of a millisecond for each, as much as all other work to place and bind a pod; a parser written in
C and this class take a quarter of that. Watches, proxies, compressed answers and pages of lists still use aiohttp.

Guarantees: an answer belongs to the request before it; any error closes the connection, so that remaining bytes cannot
be mistaken for the next answer; a write is sent once.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools
import msgspec

_MOST_BYTES = 64 << 20
"""The maximum size of an answer: objects have at most some megabytes."""
_ENDED = "the server closed the connection"


class HttpResponse(msgspec.Struct, frozen=True, gc=False):
    status: int
    reason: str
    retry_after: str
    body: bytes


class Http1Connection(asyncio.Protocol):
    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._is_spoilt = False
        self.idle_since_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return not self._is_spoilt and self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> HttpResponse:
        """Raises OSError if there is no answer. A cancelled wait closes the connection."""
        if self._transport is None or self._waiter is not None or not self.is_open:
            raise ConnectionResetError(_ENDED)
        self._parser: Any = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._size = 0
        self._reason = self._retry_after = ""
        self._is_begun = self._is_measured = False
        waiter: asyncio.Future[HttpResponse] = self._loop.create_future()
        self._waiter = waiter
        self._transport.write(request)
        try:
            return await waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None
            self.idle_since_s = self._loop.time()

    def abort(self) -> None:
        self._is_spoilt = True
        if self._transport is not None:
            self._transport.abort()

    # -- called by the loop -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            # No request is in progress: these bytes could be mistaken for the next answer.
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"the response is not HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self._is_spoilt = True
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if error is None and self._is_begun and not self._is_measured:
            # An answer without a length ends with the connection.
            self._answer()
        else:
            self._fail(error if isinstance(error, OSError) else ConnectionResetError(_ENDED))

    # -- called by the parser ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():
            # A second answer to one request.
            self._is_spoilt = True

    def on_status(self, status: bytes) -> None:
        self._reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        lowered = name.lower()
        if lowered == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif lowered in (b"content-length", b"transfer-encoding"):
            self._is_measured = True

    def on_headers_complete(self) -> None:
        self._is_begun = True

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._most_bytes:
            self._fail(ConnectionError(f"its answer has more than {self._most_bytes} bytes"))
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            # An interim response (100 Continue); the answer follows.
            self._reason = ""
            return
        self._is_spoilt = self._is_spoilt or not self._parser.should_keep_alive()
        self._answer()

    # internals

    def _answer(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            status = self._parser.get_status_code()
            self._waiter.set_result(HttpResponse(status, self._reason, self._retry_after, b"".join(self._pieces)))

    def _fail(self, error: Exception) -> None:
        self._is_spoilt = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
