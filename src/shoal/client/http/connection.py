"""Sends requests and reads answers over HTTP; raises every failure as one of the refusals of `client/refusals.py`.

A refusal by the server has the content of its Status. No answer, or one that is not from Kubernetes, raises BusyError,
because the result of a write is then unknown. A fault that only the user can correct (an unsuitable certificate, TLS to
a server without it) raises a UserError that names the context.

A request with rejected credentials had no effect: if others are available by then, it is sent again with them. After a
429, all requests of this connection wait for the time that the server asks for.
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
import msgspec
from msgspec import structs

from shoal.client.http.access import Access
from shoal.client.http.address import Address
from shoal.client.http.connection_pool import always
from shoal.client.http.credentials import Credentials, Shown
from shoal.client.http.http1_connection import HttpResponse
from shoal.client.http.rate_limit import RateLimit
from shoal.client.http.session import Session, keep_alive
from shoal.client.http.settings import KubeSettings
from shoal.client.item import Obj
from shoal.client.refusals import NO_ANSWER, BusyError, RefusedError, UnauthorizedError, refusal_of
from shoal.units.errors import UserError, Where

JSON = "application/json"
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
Query = Mapping[str, str]
_NO_QUERY: Query = {}


class _Request(NamedTuple):
    method: str
    path: str
    query: Query
    data: bytes | None
    accept: str
    media: str


class Connection:
    """Opens its sockets at the first request, so that it may be created outside an event loop."""

    def __init__(self, access: Access, settings: KubeSettings, may_write: Callable[[], bool] = always) -> None:
        self.access = access
        if access.timeout_s:
            settings = structs.replace(settings, timeout_s=access.timeout_s)
        self._settings = settings
        self._credentials = Credentials(access)
        self._pace = RateLimit(settings.requests_per_second, settings.burst)
        self._address = Address(access.server)
        self._last = Shown(access.token, access.certificate, access.key, access.authority)
        self._line = Session(access, self._last, settings, may_write)

    async def ask(
        self,
        method: str,
        path: str,
        query: Query = _NO_QUERY,
        body: object = None,
        *,
        media: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """The body of a successful answer."""
        asked = _Request(method, path, query, None if body is None else msgspec.json.encode(body), accept, media)
        await self._pace.turn()
        is_second = False
        while True:
            line = await self._shown_line()
            shown = line.shown
            try:
                with line:
                    if asked.data is None or line.proxy is not None:
                        answer = await self._at_leisure(line, asked)
                    else:
                        target = self._address.target(path, query)
                        answer = await line.send(method, target, asked.data, accept, media)
            except _NO_ANSWER as error:
                raise self._failure(error) from None
            if answer.status < 300:
                return answer.body
            refusal = self._refusal(answer, shown)
            if is_second or not isinstance(refusal, UnauthorizedError) or not await self._has_others(shown):
                raise refusal
            is_second = True

    async def _at_leisure(self, line: Session, asked: _Request) -> HttpResponse:
        """Sends reads, whose answers may be large and compressed, and all requests that go through a proxy."""
        async with line.requests().request(
            asked.method,
            self._address.of(asked.path, asked.query),
            data=asked.data,
            headers=line.headers(asked.accept, "" if asked.data is None else asked.media),
            proxy=line.proxy,
            server_hostname=line.server_name,
            allow_redirects=False,
        ) as answer:
            return await _answer_of(answer)

    @asynccontextmanager
    async def stream(self, path: str, query: Query, lasts_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The pieces of an answer that lasts `lasts_s`, as they arrive."""
        url = self._address.of(path, query)
        await self._pace.turn()
        line = await self._shown_line()
        shown = line.shown
        try:
            with line:
                async with line.watches().get(
                    url,
                    headers=line.headers(JSON, ""),
                    timeout=line.watch_timeout(lasts_s),
                    proxy=line.proxy,
                    server_hostname=line.server_name,
                    allow_redirects=False,
                ) as answer:
                    if answer.status >= 300:
                        raise self._refusal(await _answer_of(answer), shown)
                    keep_alive(answer)
                    yield answer.content.iter_any()
        except _NO_ANSWER as error:
            raise self._failure(error) from None

    def look_again(self) -> None:
        self._credentials.forget()

    async def close(self) -> None:
        await self._line.close()

    async def _shown_line(self) -> Session:
        """The session with the current credentials."""
        now_s = asyncio.get_running_loop().time()
        shown = self._credentials.known(now_s)
        if shown is None:
            shown = await self._credentials.renewed(now_s)
        if shown is not self._last and shown != self._last:
            before, self._last = self._line, shown
            self._line = before.showing(shown)
            if self._line is not before:
                await before.retire()
        return self._line

    async def _has_others(self, before: Shown) -> bool:
        """Whether there are other credentials than the rejected ones."""
        return self._credentials.may_change and (await self._shown_line()).shown != before

    def _refusal(self, answer: HttpResponse, shown: Shown) -> RefusedError | BusyError:
        """`shown`: the credentials of the refused request. Newer ones may be in use meanwhile."""
        if answer.status == 401 and shown == self._line.shown:
            self._credentials.forget()
        try:
            status: Obj = msgspec.json.decode(answer.body, type=dict)
        except msgspec.MsgspecError:
            status = {}
        if status.get("kind") != "Status":
            words = " ".join(answer.body[:200].decode(errors="replace").split())
            status = {"message": f"{self.access.server} answered {answer.status}: {words or answer.reason}"}
        if answer.status == 401:
            said = status.get("message") or answer.reason
            status = {
                **status,
                "message": f"{self.access.server} does not take the credentials of {self.access.where}: {said}",
            }
        refusal = refusal_of({**status, "code": answer.status}, _seconds(answer.retry_after))
        if isinstance(refusal, BusyError) and refusal.code == 429 and not refusal.details.get("causes"):
            # A refusal with causes concerns one object, for example when a disruption budget prevents an eviction.
            self._pace.rest(refusal.delay_s)
        return refusal

    def _failure(self, error: Exception) -> UserError | BusyError:
        """The error for a request without an answer."""
        where = Where(self.access.where)
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
            inner = getattr(error, "certificate_error", error)
            words = getattr(inner, "verify_message", "") or str(inner)
            what = f"the certificate of {self.access.server} is not trusted: {words}"
            return UserError(what, where=where, fix="take a kubeconfig with the right certificate-authority and server")
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError) and any(word in str(error) for word in _NO_TLS):
            return UserError(f"{self.access.server} does not speak TLS", where=where, fix="does it begin with http://?")
        said = f"no answer within {self._settings.timeout_s:g} s" if isinstance(error, TimeoutError) else _cause(error)
        words = f"the API server at {self.access.server} does not answer: {said}"
        return BusyError(words, reason=NO_ANSWER)


def _cause(error: Exception) -> str:
    """The error of the operating system in its own words: libraries add addresses that the message names already."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its host name is not known"
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, OSError) and inner.errno is not None and inner.errno in errno.errorcode:
        return os.strerror(inner.errno).lower()
    return str(error) or type(error).__name__


def _seconds(retry_after: str) -> float:
    """Kubernetes' servers send seconds; proxies may send a date, which is ignored."""
    return float(retry_after) if retry_after.isdecimal() else 0.0


async def _answer_of(answer: aiohttp.ClientResponse) -> HttpResponse:
    body = await answer.read()
    return HttpResponse(answer.status, answer.reason or "", answer.headers.get("Retry-After", ""), body)
