"""Limits and reuses connections to one server.

Idle connections are not reused after a while: servers and load balancers close them without notice, and a write on a
closed connection gets no answer.

`may_send` is called when a connection is available, right before the request is written: a request may have waited for
a connection longer than its process was the leader.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from shoal.client.http.http1_connection import Http1Connection, HttpResponse
from shoal.client.refusals import LeaseEndedError

_LONGEST_IDLE_S = 30.0


def always() -> bool:
    return True


class ConnectionPool:
    """Must be closed with `close`. Requests in progress then get no answer."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None,
        server_name: str,
        most: int,
        connect_s: float,
        may_send: Callable[[], bool] = always,
    ) -> None:
        self._to = host, port
        self._tls = tls
        self._server_name = (server_name or host) if tls is not None else None
        self._connect_s = connect_s
        self._may_send = may_send
        self._turns = asyncio.Semaphore(most)
        self._idle: list[Http1Connection] = []
        self._busy: set[Http1Connection] = set()
        self._is_closed = False

    async def ask(self, request: bytes, timeout_s: float) -> HttpResponse:
        """Raises OSError (including TimeoutError) if there is no answer, LeaseEndedError if the request was not
        sent.
        """
        async with asyncio.timeout(timeout_s), self._turns:
            wire = self._rested() or await self._opened()
            self._busy.add(wire)
            try:
                if self._is_closed:
                    raise ConnectionAbortedError("the connection is being closed")
                if not self._may_send():
                    raise LeaseEndedError()
                return await wire.ask(request)
            finally:
                self._busy.discard(wire)
                if wire.is_open and not self._is_closed:
                    self._idle.append(wire)
                else:
                    wire.abort()

    def close(self) -> None:
        self._is_closed = True
        for wire in (*self._idle, *self._busy):
            wire.abort()
        self._idle.clear()

    def _rested(self) -> Http1Connection | None:
        """The connection that was used last; the others become too old and are closed."""
        oldest_s = asyncio.get_running_loop().time() - _LONGEST_IDLE_S
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open and wire.idle_since_s >= oldest_s:
                return wire
            wire.abort()
        return None

    async def _opened(self) -> Http1Connection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._connect_s):
            _, wire = await loop.create_connection(
                Http1Connection, *self._to, ssl=self._tls, server_hostname=self._server_name
            )
        return wire
