"""Proxies requests to aggregated API servers with the name of the user.

Bodies are forwarded in pieces both ways, so a watch is proxied as it happens. The client's own credentials stay here.
The user is named in headers, which the other server trusts only with this server's client certificate.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.aggregated.following import FollowedServices
from shoal.embedded.apiserver.aggregated.server import Server, Servers, identity
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.dynamic.endpoints import UnresolvedError
from shoal.embedded.apiserver.dynamic.trust import BundleError
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.streams.sending import send

_OWN = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that are not forwarded."""
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_IDENTITY = ("x-remote-", "impersonate-")


class Proxy:
    """The documents' `Elsewhere`."""

    def __init__(self, services: FollowedServices, servers: Servers) -> None:
        self._services = services
        self._servers = servers

    async def __call__(self, request: web.BaseRequest, info: RequestInfo, actor: Actor) -> web.StreamResponse | None:
        group, version = info.group, info.version
        if not info.is_resource:
            parts = info.path.removeprefix("/").rstrip("/").split("/")
            if len(parts) != 3 or parts[0] != "apis":
                return None
            group, version = parts[1], parts[2]
        found = self._services.server(group, version)
        if found is None:
            return None
        server, is_available = found
        _check_address(request)
        if not is_available:
            return _unavailable()
        try:
            return await self._handed_on(request, server, actor)
        except UnresolvedError:
            return _unavailable()
        except BundleError as error:
            return web.Response(status=500, text=f"{error}\n")

    async def _handed_on(self, request: web.BaseRequest, server: Server, actor: Actor) -> web.StreamResponse:
        address = self._servers.address(server)
        # As it was written: names in paths may be escaped, and stay so.
        url = URL(f"https://{address.authority}{request.rel_url.raw_path_qs}", encoded=True)
        asked = self._servers.session.request(
            request.method,
            url,
            headers=_headers(request, server, actor),
            data=request.content if request.body_exists else None,
            ssl=self._servers.tls(server),
            server_hostname=server.name,
            allow_redirects=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )
        response: web.StreamResponse | None = None
        try:
            async with asked as answer:
                response = web.StreamResponse(status=answer.status, headers=_answered(answer))
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await send(request, response, piece)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, ConnectionError) as error:
            if response is not None:
                # The answer has begun: all that is left to say is that it ends here.
                raise ConnectionResetError from error
            return web.Response(status=503, text=f"error trying to reach service: {error}\n")


def _check_address(request: web.BaseRequest) -> None:
    """Refuse what the other server would take for another path or another query than were authorized."""
    if not {".", ".."}.isdisjoint(unquote(request.rel_url.raw_path).split("/")):
        raise status.bad_request('the path of an aggregated API may not have "." or ".." as a segment')
    query = request.rel_url.raw_query_string
    if ";" in query or _BROKEN_ESCAPE.search(query):
        # Servers in Go leave such parameters out, and with them the selector by which a list was authorized.
        raise status.bad_request('the query of an aggregated API may not have ";" or a "%" that begins no escape')


def _headers(request: web.BaseRequest, server: Server, actor: Actor) -> CIMultiDict[str]:
    made: CIMultiDict[str] = CIMultiDict()
    for name, value in request.headers.items():
        lower = name.lower()
        if lower not in _OWN and not lower.startswith(_IDENTITY):
            made.add(name, value)
    for name, value in identity(actor):
        made.add(name, value)
    made["Host"] = f"{server.name}:{server.port}"
    return made


def _answered(answer: aiohttp.ClientResponse) -> CIMultiDict[str]:
    made: CIMultiDict[str] = CIMultiDict()
    for name, value in answer.headers.items():
        if name.lower() not in _OWN:
            made.add(name, value)
    return made


def _unavailable() -> web.Response:
    """Clients make of this code: the server is currently unable to handle the request."""
    return web.Response(status=503, text="service unavailable\n")
