"""Requests and their answers over HTTP; every failure leaves here as one of the port's refusals.

What the server refuses is what its Status says; no answer, or one that is no Kubernetes answer, is BusyError, because
nothing is known then of what became of a write. What only a person can mend (a certificate that does not fit, TLS asked
of a server without it) is a UserError that names the context.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

from shoal.store.kube.access import Access
from shoal.store.kube.bearer import Bearer
from shoal.store.kube.pace import Pace
from shoal.store.kube.settings import KubeSettings, user_agent
from shoal.store.kube.tls import client_context
from shoal.store.live.item import Obj
from shoal.store.live.refusals import BusyError, RefusedError, refusal_of
from shoal.units.errors import UserError, Where

JSON = "application/json"
_CONNECT_S = 10.0
_WATCH_MARGIN_S = 30.0
_WATCH_BUFFER = 1 << 20
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
Query = Mapping[str, str]


class Connection:
    """Opens what it needs at the first request, so that it may be made outside of a loop."""

    def __init__(self, access: Access, settings: KubeSettings) -> None:
        self.access = access
        self._settings = settings
        self._bearer = Bearer(access)
        self._pace = Pace(settings.requests_per_second, settings.burst)
        self._tls = client_context(access) if access.server.startswith("https:") else None
        self._proxy = access.proxy or _proxy_of(access.server)
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None

    async def ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
        *,
        media: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """The body of a good answer."""
        if self._requests is None:
            self._requests = self._session(self._settings.connections, self._settings.timeout_s)
        data = None if body is None else msgspec.json.encode(body)
        await self._pace.turn()
        headers = self._headers(accept, media if data is not None else "")
        with self._translated():
            async with self._requests.request(
                method,
                self.access.server + path,
                params=query,
                data=data,
                headers=headers,
                proxy=self._proxy,
                server_hostname=self.access.tls_name or None,
                allow_redirects=False,
            ) as answer:
                found = await answer.read()
        if answer.status >= 300:
            raise self._refusal(answer, found)
        return found

    @asynccontextmanager
    async def stream(self, path: str, query: Query, lasts_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The pieces of an answer that goes on for `lasts_s`, as they come."""
        if self._watches is None:
            self._watches = self._session(0, None)
        await self._pace.turn()
        timeout = aiohttp.ClientTimeout(total=lasts_s + _WATCH_MARGIN_S, sock_connect=_CONNECT_S)
        with self._translated():
            async with self._watches.get(
                self.access.server + path,
                params=query,
                headers=self._headers(JSON),
                timeout=timeout,
                read_bufsize=_WATCH_BUFFER,
                proxy=self._proxy,
                server_hostname=self.access.tls_name or None,
                allow_redirects=False,
            ) as answer:
                if answer.status >= 300:
                    raise self._refusal(answer, await answer.read())
                _keep_alive(answer)
                yield answer.content.iter_any()

    async def close(self) -> None:
        for session in (self._requests, self._watches):
            if session is not None:
                await session.close()

    def _session(self, connections: int, timeout_s: float | None) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections, ssl=self._tls or True)
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _headers(self, accept: str, media: str = "") -> list[tuple[str, str]]:
        headers = [("Accept", accept), ("User-Agent", user_agent()), *self.access.headers]
        if media:
            headers.append(("Content-Type", media))
        token = self._bearer.token(asyncio.get_running_loop().time())
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        return headers

    def _refusal(self, answer: aiohttp.ClientResponse, body: bytes) -> RefusedError | BusyError:
        if answer.status == 401:
            self._bearer.forget()
        try:
            status: Obj = msgspec.json.decode(body, type=dict)
        except msgspec.MsgspecError:
            status = {}
        if status.get("kind") != "Status":
            words = " ".join(body[:200].decode(errors="replace").split())
            status = {"message": f"{self.access.server} answered {answer.status}: {words or answer.reason}"}
        return refusal_of({**status, "code": answer.status}, _seconds(answer.headers.get("Retry-After", "")))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as error:
            inner = getattr(error, "certificate_error", error)
            words = getattr(inner, "verify_message", "") or str(inner)
            what = f"the certificate of {self.access.server} is not trusted: {words}"
            fix = "take a kubeconfig with the right certificate-authority and server"
            raise UserError(what, where=Where(self.access.where), fix=fix) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if isinstance(error, aiohttp.ClientSSLError) and any(word in str(error) for word in _NO_TLS):
                what = f"{self.access.server} does not speak TLS"
                raise UserError(what, where=Where(self.access.where), fix="does it begin with http://?") from None
            words = str(error) or type(error).__name__
            raise BusyError(f"no answer from {self.access.server}: {words}") from None


def _seconds(retry_after: str) -> float:
    """Servers of Kubernetes say seconds; proxies may say a date, which is taken for nothing said."""
    return float(retry_after) if retry_after.isdecimal() else 0.0


def _proxy_of(server: str) -> str | None:
    """As the environment says, which aiohttp would read too, but along with passwords of a netrc file."""
    address = urlsplit(server)
    if address.hostname in _LOOPBACK or proxy_bypass(address.netloc):
        return None
    proxy = getproxies().get(address.scheme, "")
    return proxy if proxy.startswith(("http://", "https://")) else None


def _keep_alive(answer: aiohttp.ClientResponse) -> None:
    """A watch is silent for minutes; a peer that is gone without a word must be noticed sooner."""
    transport = answer.connection.transport if answer.connection is not None else None
    found = transport.get_extra_info("socket") if transport is not None else None
    if found is None:
        return
    with suppress(OSError, AttributeError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
