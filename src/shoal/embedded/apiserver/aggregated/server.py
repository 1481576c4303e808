"""One server that serves an API of this cluster: its address, its certificate name, and whether it answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from shoal.embedded.apiserver.aggregated.front_proxy import FrontProxy
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.dynamic.bounded import TooLongError, read_bounded
from shoal.embedded.apiserver.dynamic.endpoints import Endpoints, UnresolvedError, WebhookEndpointAddress
from shoal.embedded.apiserver.dynamic.posting import Posting
from shoal.embedded.apiserver.dynamic.trust import BundleError

Obj = dict[str, Any]
_PATIENCE_S = 5.0
_LONGEST = 8 << 20
"""Bytes of an answer: more than any discovery document."""
_CHECKER = Actor("system:kube-aggregator", ("system:masters",))
_HEADER_MARKS = "!#$&'*+-.^_`|~"
"""What names of headers may have beside letters and digits."""
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Server(msgspec.Struct, frozen=True):
    """What an APIService says of the server behind it."""

    group: str
    version: str
    namespace: str
    service: str
    port: int
    bundle: str
    is_blind: bool

    @property
    def name(self) -> str:
        """What its certificate must be for."""
        return f"{self.service}.{self.namespace}.svc"


def server_of(api_service: Mapping[str, Any]) -> Server | None:
    """None for an API that this server serves itself."""
    spec = api_service.get("spec") or {}
    service = spec.get("service")
    if not service:
        return None
    return Server(
        spec.get("group", ""),
        spec.get("version", ""),
        service.get("namespace", ""),
        service.get("name", ""),
        service.get("port") or 443,
        spec.get("caBundle") or "",
        bool(spec.get("insecureSkipTLSVerify")),
    )


def identity(actor: Actor) -> Iterable[tuple[str, str]]:
    """The headers that tell the other server who asks."""
    yield "X-Remote-User", actor.name
    if actor.uid:
        yield "X-Remote-Uid", actor.uid
    for group in actor.groups:
        yield "X-Remote-Group", group
    for key, values in actor.extra:
        for value in values:
            yield f"X-Remote-Extra-{quote(key, safe=_HEADER_MARKS)}", value


class Servers:
    """Asks other servers on this one's own behalf."""

    def __init__(self, endpoints: Endpoints, posting: Posting, front_proxy: FrontProxy) -> None:
        self.endpoints = endpoints
        self._posting = posting
        self._front_proxy = front_proxy

    @property
    def session(self) -> aiohttp.ClientSession:
        return self._posting.session()

    def address(self, server: Server) -> WebhookEndpointAddress:
        return self.endpoints.resolve(server.namespace, server.service, server.port)

    def tls(self, server: Server) -> ssl.SSLContext:
        return self._front_proxy.context(None if server.is_blind else server.bundle)

    async def fault(self, server: Server) -> str:
        """Why the server cannot be said to serve its group; empty if it does."""
        try:
            address = self.address(server)
        except UnresolvedError as error:
            return str(error)
        path = f"/apis/{server.group}/{server.version}"
        url = f"https://{address.authority}{path}"
        try:
            code, _ = await self._get(server, path, "application/json", is_blind=True)
        except TimeoutError:
            return f'failing or missing response from {url}: Get "{url}": context deadline exceeded'
        except (aiohttp.ClientError, OSError, UnresolvedError, TooLongError) as error:
            return f'failing or missing response from {url}: Get "{url}": {_words(error)}'
        if not 200 <= code < 300:
            return f"failing or missing response from {url}: bad status from {url}: {code}"
        return ""

    async def discovered(self, server: Server) -> Obj | None:
        """One version of a group as the aggregated discovery document tells it; None if the server does not tell."""
        try:
            code, raw = await self._get(server, "/apis", _AGGREGATED)
            found = _aggregated(raw, server) if code == 200 else None
            if found is not None:
                return found
            code, raw = await self._get(server, f"/apis/{server.group}/{server.version}", "application/json")
            return _from_list(msgspec.json.decode(raw), server) if code == 200 else None
        except (TimeoutError, aiohttp.ClientError, OSError, UnresolvedError, BundleError, TooLongError):
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError, AttributeError):
            # Whatever it tells, it is not discovery.
            return None

    async def get(self, server: Server, path: str, actor: Actor) -> tuple[int, bytes]:
        """The answer to a user of this process. `path` may have a query behind it."""
        return await self._get(server, path, "application/json", actor=actor)

    async def _get(
        self, server: Server, path: str, accept: str, *, is_blind: bool = False, actor: Actor = _CHECKER
    ) -> tuple[int, bytes]:
        address = self.address(server)
        async with asyncio.timeout(_PATIENCE_S):
            asked = self.session.get(
                URL(f"https://{address.authority}{path}", encoded=True),
                headers=[("Accept", accept), *identity(actor)],
                ssl=self._front_proxy.context(None) if is_blind else self.tls(server),
                server_hostname=server.name,
                allow_redirects=False,
            )
            async with asked as response:
                return response.status, await read_bounded(response, _LONGEST)


def _words(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
        return f"dial tcp {error.host}:{error.port}: connect: connection refused"
    return str(error) or "EOF"


def _aggregated(raw: bytes, server: Server) -> Obj | None:
    found = msgspec.json.decode(raw)
    if not isinstance(found, dict) or found.get("kind") != "APIGroupDiscoveryList":
        return None
    for item in found.get("items") or ():
        if item["metadata"].get("name") == server.group:
            for version in item.get("versions") or ():
                if version.get("version") == server.version:
                    return {**version, "freshness": "Current"}
    return None


def _from_list(found: Obj, server: Server) -> Obj:
    """A version of the newer document from the older one."""
    resources: dict[str, Obj] = {}
    for one in found.get("resources") or ():
        plural, _, subresource = one["name"].partition("/")
        kind = {
            "group": one.get("group") or server.group,
            "version": one.get("version") or server.version,
            "kind": one.get("kind", ""),
        }
        if subresource:
            owner = resources.get(plural)
            if owner is not None:
                made = {"subresource": subresource, "responseKind": kind, "verbs": one.get("verbs") or []}
                owner.setdefault("subresources", []).append(made)
            continue
        entry: Obj = {
            "resource": plural,
            "responseKind": kind,
            "scope": "Namespaced" if one.get("namespaced") else "Cluster",
            "singularResource": one.get("singularName", ""),
            "verbs": one.get("verbs") or [],
        }
        for key in ("shortNames", "categories"):
            if one.get(key):
                entry[key] = one[key]
        resources[plural] = entry
    return {"version": server.version, "resources": list(resources.values()), "freshness": "Current"}
