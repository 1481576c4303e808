"""Calls to webhooks: an object is posted over HTTPS and an object comes back.

`clientConfig` names a URL or a Service; a Service is looked up (`endpoints.py`) and the certificate checked for its
name in the cluster. What fails is a `CallError` in the words that Kubernetes' client has for it, since people know
their broken webhooks by them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from shoal.embedded.apiserver.dynamic.bounded import TooLongError, read_bounded
from shoal.embedded.apiserver.dynamic.endpoints import Endpoints, UnresolvedError
from shoal.embedded.apiserver.dynamic.trust import BundleError, context_for, fault_words
from shoal.embedded.apiserver.field_errors import shown as quoted

Obj = dict[str, Any]
_HEADERS = {
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}
_REFUSALS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "forbidden",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
}


_SPARE_BYTES = 8 << 20
"""What an answer may be longer than twice what was asked: objects come back converted, with a patch or with reasons."""


class CallError(Exception):
    """A webhook could not be asked, or its answer could not be understood."""


class _Target(msgspec.Struct, frozen=True):
    shown: str
    """The URL as it is configured: what errors name."""
    dialed: str
    server_name: str


class Posting:
    """The one client that all webhooks are called with. Its connections are kept between calls."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._session: aiohttp.ClientSession | None = None

    async def post(self, config: Mapping[str, Any], body: Obj, timeout_s: float) -> Obj:
        """The object that a webhook answers with; CallError where there is none."""
        query = f"timeout={int(timeout_s)}s"
        shown = _shown(config, query)
        try:
            async with asyncio.timeout(timeout_s):
                target = self._target(config, shown, query)
                tls = context_for(config.get("caBundle") or "")
                raw = msgspec.json.encode(body)
                try:
                    return _understood(*await self._sent(target, tls, raw))
                except aiohttp.ServerDisconnectedError:
                    # A kept connection that the other side had given up; a fresh one tells whether it is still there.
                    return _understood(*await self._sent(target, tls, raw))
        except TimeoutError:
            raise CallError(f'Post "{shown}": context deadline exceeded') from None
        except (UnresolvedError, TooLongError) as error:
            raise CallError(f'Post "{shown}": {error}') from None
        except BundleError as error:
            raise CallError(str(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallError(f'Post "{shown}": {_words(error, shown)}') from None

    async def _sent(self, target: _Target, tls: ssl.SSLContext, raw: bytes) -> tuple[int, bytes]:
        asked = self.session().post(
            target.dialed,
            data=raw,
            headers={**_HEADERS, "Host": target.shown.partition("//")[2].partition("/")[0]},
            ssl=tls,
            server_hostname=target.server_name,
            allow_redirects=False,
        )
        async with asked as response:
            return response.status, await read_bounded(response, _SPARE_BYTES + 2 * len(raw))

    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=30)
            timeout = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _target(self, config: Mapping[str, Any], shown: str, query: str) -> _Target:
        service = config.get("service")
        if not service:
            host = shown.partition("//")[2].partition("/")[0].partition("?")[0]
            return _Target(shown, shown, host.rpartition(":")[0].strip("[]") if ":" in host else host)
        namespace, name = service.get("namespace", ""), service.get("name", "")
        address = self._endpoints.resolve(namespace, name, service.get("port") or 443)
        path = service.get("path") or "/"
        return _Target(shown, f"https://{address.authority}{path}?{query}", f"{name}.{namespace}.svc")


def _shown(config: Mapping[str, Any], query: str) -> str:
    service = config.get("service")
    if not service:
        url = str(config.get("url") or "")
        return f"{url}{'&' if '?' in url else '?'}{query}"
    host = f"{service.get('name', '')}.{service.get('namespace', '')}.svc:{service.get('port') or 443}"
    return f"https://{host}{service.get('path') or '/'}?{query}"


def _words(error: BaseException, shown: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return fault_words(error.certificate_error, shown.partition("//")[2].partition("/")[0].rpartition(":")[0])
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return fault_words(error.os_error, "")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        host = f"[{error.host}]" if ":" in error.host else error.host
        if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {host}:{error.port}: connect: connection refused"
        return f"dial tcp {host}:{error.port}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionError):
        return "EOF"
    return str(error)


def _understood(code: int, raw: bytes) -> Obj:
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        found = None
        if code < 300:
            raise CallError(f"couldn't get version/kind; json parse error: {error}") from None
    if code < 300:
        if not isinstance(found, dict) or not found.get("kind"):
            raise CallError(f"Object 'Kind' is missing in '{raw[:2000].decode(errors='replace')}'")
        return found
    if isinstance(found, dict) and found.get("kind") == "Status" and found.get("message"):
        raise CallError(str(found["message"]))
    text = raw[:2048].decode(errors="replace").strip()
    known = _REFUSALS.get(code)
    if known is None and code >= 500:
        known = f"an error on the server ({quoted(text or 'unknown')}) has prevented the request from succeeding"
    raise CallError(known or f"the server responded with the status code {code} but did not return more information")
