"""Holds the connections to a server for one set of TLS credentials, and the headers of their requests.

A new token changes a header only. A new certificate or trusted authority needs a new session: the old one is closed
when its last request has its answer, so that a renewal interrupts no request.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.connector import Connection
from msgspec import structs

from shoal.client.http.access import Access
from shoal.client.http.connection_pool import ConnectionPool, always
from shoal.client.http.credentials import Shown
from shoal.client.http.http1_connection import HttpResponse
from shoal.client.http.settings import KubeSettings, user_agent
from shoal.client.http.tls import client_context
from shoal.client.refusals import LeaseEndedError
from shoal.units.errors import UserError, Where

_log = logging.getLogger("shoal.store")
_CONNECT_S = 10.0
_WATCH_MARGIN_S = 30.0
_WATCH_BUFFER = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TLS = ("certificate", "key", "authority")
_PORTS = {"https": 443, "http": 80}
_BREAKS = re.compile(r"[\r\n\0]")


class Session:
    """A `with` around a request keeps the session open until the answer is complete."""

    def __init__(
        self, access: Access, shown: Shown, settings: KubeSettings, may_write: Callable[[], bool] = always
    ) -> None:
        self.shown = shown
        self.proxy = access.proxy or _proxy_of(access.server)
        self.server_name = access.tls_name or None
        self._access = structs.replace(access, **{part: getattr(shown, part) for part in _TLS})
        self._settings = settings
        self._may_write = may_write
        self._tls = client_context(self._access) if access.server.startswith("https:") else None
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None
        self._wires: ConnectionPool | None = None
        self._request_class = aiohttp.ClientRequest if may_write is always else _checked(may_write)
        self._headers: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._heads: dict[tuple[str, str], bytes] = {}
        self._unfit: Shown | None = None
        self._users = 0
        self._is_retired = False
        self._closing: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._users += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._users -= 1
        if self._is_retired and self._users == 0:
            self._closing = asyncio.ensure_future(self.close())

    def showing(self, shown: Shown) -> Session:
        """A session with these credentials: this one with another token, or a new one."""
        if shown != self._unfit and any(getattr(shown, part) != getattr(self.shown, part) for part in _TLS):
            try:
                return Session(self._access, shown, self._settings, self._may_write)
            except UserError as error:
                # The files are incomplete or invalid: the present credentials stay in use.
                _log.warning("other credentials cannot be used: %s", error)
                self._unfit = shown
        self.shown = structs.replace(self.shown, token=shown.token)
        self._headers.clear()
        self._heads.clear()
        return self

    def headers(self, accept: str, media: str) -> list[tuple[str, str]]:
        """`media`: the type of the body; empty without one. The caller must not change the result."""
        found = self._headers.get((accept, media))
        if found is None:
            found = [("Accept", accept), ("User-Agent", user_agent()), *self._access.headers]
            if media:
                found.append(("Content-Type", media))
            if self.shown.token:
                found.append(("Authorization", f"Bearer {self.shown.token}"))
            self._headers[accept, media] = found
        return found

    async def send(self, method: str, target: str, data: bytes, accept: str, media: str) -> HttpResponse:
        """Send a write directly to the server, without a proxy. Raises OSError if there is no answer."""
        head = self._heads.get((accept, media))
        if head is None:
            head = self._heads[accept, media] = self._head(accept, media)
        first = f"{method} {target} HTTP/1.1\r\nContent-Length: {len(data)}\r\n".encode("ascii")
        if self._wires is None:
            self._wires = self._connections()
        return await self._wires.ask(first + head + data, self._settings.timeout_s)

    def _head(self, accept: str, media: str) -> bytes:
        """The headers that all these requests share."""
        lines = [("Host", urlsplit(self._access.server).netloc.rpartition("@")[2]), *self.headers(accept, media)]
        if any(_BREAKS.search(name) or _BREAKS.search(value) for name, value in lines):
            what = "a header or token to be sent with requests has a line break in it"
            raise UserError(what, where=Where(self._access.where), fix="write it on one line")
        return "".join(f"{name}: {value}\r\n" for name, value in lines).encode("utf-8") + b"\r\n"

    def _connections(self) -> ConnectionPool:
        at = urlsplit(self._access.server)
        return ConnectionPool(
            at.hostname or "",
            at.port or _PORTS[at.scheme],
            tls=self._tls,
            server_name=self.server_name or "",
            most=self._settings.connections,
            connect_s=_CONNECT_S,
            may_send=self._may_write,
        )

    def requests(self) -> aiohttp.ClientSession:
        if self._requests is None:
            self._requests = self._session(self._settings.connections, self._settings.timeout_s)
        return self._requests

    def watches(self) -> aiohttp.ClientSession:
        if self._watches is None:
            self._watches = self._session(0, None)
        return self._watches

    def watch_timeout(self, lasts_s: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=lasts_s + _WATCH_MARGIN_S, sock_connect=_CONNECT_S)

    async def retire(self) -> None:
        """Close the session, at once or after its last answer."""
        self._is_retired = True
        if self._users == 0:
            await self.close()

    async def close(self) -> None:
        if self._wires is not None:
            self._wires.close()
        for session in (self._requests, self._watches):
            if session is not None:
                await session.close()

    def _session(self, connections: int, timeout_s: float | None) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, ssl=self._tls or True),
            timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=() if self._access.compresses else ("Accept-Encoding",),
            read_bufsize=_WATCH_BUFFER,
            request_class=self._request_class,
        )


def _checked(may_write: Callable[[], bool]) -> type[aiohttp.ClientRequest]:
    """The request class of a session that calls `may_write` when a connection is available for a write."""

    class Checked(aiohttp.ClientRequest):
        async def send(self, conn: Connection) -> aiohttp.ClientResponse:
            if self.method != "GET" and not may_write():
                raise LeaseEndedError()
            return await super().send(conn)

    return Checked


def keep_alive(answer: aiohttp.ClientResponse) -> None:
    """A watch may be silent for minutes; a peer that disappeared must be detected earlier."""
    transport = answer.connection.transport if answer.connection is not None else None
    found = transport.get_extra_info("socket") if transport is not None else None
    if found is None:
        return
    with suppress(OSError, AttributeError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _proxy_of(server: str) -> str | None:
    """The proxy of the environment. aiohttp could read it too, but only together with passwords of a netrc file."""
    address = urlsplit(server)
    if address.hostname in _LOOPBACK or proxy_bypass(address.netloc):
        return None
    proxy = getproxies().get(address.scheme, "")
    return proxy if proxy.startswith(("http://", "https://")) else None
