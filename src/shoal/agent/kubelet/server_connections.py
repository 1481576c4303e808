"""Keeps idle connections from this machine to the API server, by which the server reaches the kubelet.

The server takes an idle connection into use for its own TLS connection to the kubelet's port on loopback; then this
machine opens another. So the machine needs no port that others reach. Both sides are authenticated twice: the outer
connection by the node's certificate and the cluster's authority, the inner one by the server's client certificate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import aiohttp

from shoal import __version__
from shoal.client.clock import Clock
from shoal.client.http.access import Access
from shoal.client.http.connection import Connection
from shoal.client.http.settings import KubeSettings
from shoal.client.http.tls import client_context
from shoal.client.kubelet.node_joining import ENDING, OPENING, PROTOCOL, REMOVED, connection_path
from shoal.client.outage import Reminders
from shoal.client.refusals import RefusedError, UnauthorizedError
from shoal.units.errors import ShoalError, TemporaryError, UserError

_log = logging.getLogger("shoal.agent.kubelet")
_IDLE = 4
_MOST = 256
"""Connections at once, in use or idle."""
_HEARTBEAT_S = 15.0
_FIRST_S, _LONGEST_S, _DIAL_S = 1.0, 10.0, 30.0
_PIECE = 64 * 1024
_SETTINGS = KubeSettings(timeout_s=20.0, connections=1)


class NodeRemovedError(ShoalError):
    """An administrator removed this node from the cluster."""


class ServerConnections:
    def __init__(self, access: Callable[[], Access], node: str, port: int, clock: Clock) -> None:
        """`access`: reads the present certificate; `port`: the kubelet's, on loopback."""
        self._access, self._node, self._port, self._clock = access, node, port, clock
        self._query = {"protocol": str(PROTOCOL), "version": __version__}
        self._limit = asyncio.Semaphore(_MOST)
        self._used: set[asyncio.Task[None]] = set()
        self._outage, self._is_out = Reminders(), False
        self.connected = asyncio.Event()
        """Set when there was a connection."""

    async def run(self) -> None:
        """Runs until cancelled. Raises NodeRemovedError once the server says so."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_IDLE):
                    group.create_task(self._keep_idle())
        except* NodeRemovedError as removed:
            raise NodeRemovedError(str(removed.exceptions[0])) from None
        finally:
            for task in self._used:
                task.cancel()
            await asyncio.gather(*self._used, return_exceptions=True)

    async def _keep_idle(self) -> None:
        """Have one idle connection at all times."""
        pause_s = _FIRST_S
        while True:
            await self._limit.acquire()
            taken = asyncio.Event()
            task = asyncio.ensure_future(self._one(taken))
            self._used.add(task)
            waiting = asyncio.ensure_future(taken.wait())
            try:
                await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
                task.add_done_callback(self._ended)
            if taken.is_set():
                pause_s = _FIRST_S
                continue
            await self._check(task.exception())
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_S)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._used.discard(task)
        self._limit.release()
        if not task.cancelled():
            task.exception()

    async def _one(self, taken: asyncio.Event) -> None:
        """One connection from its start to its end; sets `taken` when the server uses it."""
        access = self._access()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_DIAL_S)
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout) as session,
            session.ws_connect(
                access.server + connection_path(self._node),
                params=self._query,
                ssl=client_context(access),
                heartbeat=_HEARTBEAT_S,
                max_msg_size=2 * _PIECE,
            ) as socket,
        ):
            self._answers()
            first = await socket.receive()
            if first.data != OPENING:
                return
            taken.set()
            await self._relayed(socket)

    async def _relayed(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        sending = asyncio.ensure_future(_sent(reader, socket))
        try:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.BINARY:
                    break
                writer.write(message.data)
                await writer.drain()
        finally:
            sending.cancel()
            writer.close()
            await asyncio.gather(sending, return_exceptions=True)

    async def _check(self, error: BaseException | None) -> None:
        """Find out why there is no connection. Raises NodeRemovedError."""
        connection = Connection(self._access(), _SETTINGS)
        try:
            await connection.ask("GET", connection_path(self._node), self._query)
        except UnauthorizedError as refused:
            if refused.reason == REMOVED:
                raise NodeRemovedError(refused.what) from None
            self._report(str(refused))
        except RefusedError as refused:
            # Without an upgrade a good request is refused as well.
            if error is not None:
                self._report(str(refused))
        except (TemporaryError, UserError) as failure:
            # A server with another certificate may be another machine at this address, for some time.
            self._report(str(failure))
        finally:
            await connection.close()

    def _answers(self) -> None:
        self.connected.set()
        if self._is_out:
            _log.warning("there is a connection for logs and commands again")
        self._is_out = False
        self._outage.end()

    def _report(self, words: str) -> None:
        self._is_out = True
        if (lasting := self._outage.report(self._clock.seconds())) is not None:
            _log.warning("no connection for logs and commands: %s; retrying%s", words, lasting)


async def _sent(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(_PIECE):
            await socket.send_bytes(piece)
        await socket.send_str(ENDING)
