"""A watcher that checks what it is sent and takes little to do so: each event later than the one before, none twice.

Events are found in the bytes as they come from TLS. Decoding them, or only taking the chunks of HTTP apart, would cost
the client more than it costs the server to send them: twenty watchers are sent near a gigabyte.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import cast

from bench.cluster.wire import Connection, Target

_REQUEST = b"GET /api/v1/pods?watch=1&resourceVersion=%d HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\n\r\n"
_NAME, _VERSION = b'"name":"', b'"resourceVersion":"'


class DisorderError(Exception):
    """A watch that was refused, ended, or sent an event out of order."""


class Follower(asyncio.Protocol):
    """One watch of all pods. `arrived` has the moment of each event by the pod's name, when asked to keep it."""

    def __init__(self, request: bytes, since: int) -> None:
        self._request = request
        self._newest = since
        self._tail = b""
        self._wanted = 0
        self._keeps_moments = False
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self.count = 0
        self.arrived: dict[bytes, float] = {}

    @classmethod
    async def open(cls, target: Target, since: int | None = None) -> Follower:
        """From a revision on, or from now on."""
        if since is None:
            line = await Connection.open(target)
            since = await newest_revision(line)
            line.close()
        request, loop = _REQUEST % (since, target.host.encode()), asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: cls(request, since), target.host, target.port, ssl=target.tls)
        return made

    async def until(self, count: int, *, keeps_moments: bool = False) -> None:
        """Returns once `count` events have come since the beginning."""
        self._wanted, self._keeps_moments = count, keeps_moments
        if self.count < count:
            await self._done

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are no subclass of it.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        try:
            self._take(self._tail + data if self._tail else data)
        except Exception as error:  # noqa: BLE001 - raised again in `until`
            self._end(error)
        if self._wanted and self.count >= self._wanted:
            self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or DisorderError("the server ended the watch"))

    def _end(self, error: Exception | None) -> None:
        if self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
            self._done.exception()  # seen, whether or not anybody waits

    def _take(self, data: bytes) -> None:
        """Count the events whose lines are complete and keep the rest. Lines that hold no event are HTTP's."""
        now, at, newest = perf_counter(), 0, self._newest
        while (found := data.find(_VERSION, at)) >= 0:
            start = found + len(_VERSION)
            end = data.find(b"\n", start)
            if end < 0:
                break
            version = int(data[start : data.index(b'"', start)])
            if version <= newest:
                raise DisorderError(f"{version} came after {newest}")
            newest = version
            if self._keeps_moments:
                name = data.index(_NAME, at) + len(_NAME)
                self.arrived[data[name : data.index(b'"', name)]] = now
            self.count += 1
            at = end + 1
        self._newest = newest
        self._tail = data[at:]
        if not self.count and len(self._tail) > 12 and not self._tail.startswith(b"HTTP/1.1 200"):
            raise DisorderError(f"the watch was refused: {self._tail[:300]!r}")


async def newest_revision(connection: Connection) -> int:
    code, body = await connection.answer(b"GET", b"/api/v1/pods?limit=1")
    if code != 200:
        raise RuntimeError(f"no list: {body[:200]!r}")
    start = body.index(_VERSION) + len(_VERSION)
    return int(body[start : body.index(b'"', start)])
