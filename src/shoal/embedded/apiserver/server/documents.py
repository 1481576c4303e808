"""Serves documents other than resources: discovery, OpenAPI, health, version, metrics, keys of service account
tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Protocol

from aiohttp import web

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.server import answers
from shoal.embedded.apiserver.server.accept import PLAIN
from shoal.embedded.apiserver.server.health import ServerHealth
from shoal.embedded.apiserver.server.metrics import Metrics
from shoal.embedded.apiserver.server.yaml_answers import as_yaml
from shoal.embedded.apiserver.state.state import State
from shoal.embedded.apiserver.status import qualified


class Made(Protocol):
    """A document that is ready to be sent."""

    @property
    def body(self) -> bytes: ...

    @property
    def content_type(self) -> str: ...

    @property
    def etag(self) -> str: ...


Maker = Callable[[str, Mapping[str, str], str], Made | None]
"""Of a path, the query and the Accept header; None if the path is not its own."""

Elsewhere = Callable[[web.BaseRequest, RequestInfo, Actor], Awaitable[web.StreamResponse | None]]
"""API groups of other servers (APIService), requested in the name of the user."""


_WITH_ROUTES = ("api", "version")
"""Below these, as below each built-in group, Kubernetes knows all routes, and answers others with a Status."""


class Documents:
    def __init__(
        self,
        state: State,
        catalog: ResourceCatalog,
        health: ServerHealth,
        metrics: Metrics,
        makers: Mapping[str, Maker],
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._state = state
        self._catalog = catalog
        self._health = health
        self._metrics = metrics
        self._makers = makers
        self._elsewhere = elsewhere

    async def serve(self, request: web.BaseRequest, info: RequestInfo, actor: Actor) -> web.StreamResponse:
        path = info.path
        healthy = self._health.answer(path, request.query)
        if healthy is not None:
            return healthy
        if path == "/metrics":
            text = self._metrics.text(self._state.revision, _counts(self._state))
            return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
        head = path.strip("/").partition("/")[0]
        maker = self._makers.get(head)
        made = maker(path, request.query, request.headers.get("Accept", "")) if maker is not None else None
        if made is not None:
            if request.method != "GET" and _is_read_only(path):
                raise status.method_not_supported("", "")
            return _document(request, made)
        if path.strip("/"):
            return await self.serve_unknown(request, info, actor)
        return answers.answer(200, {"paths": self._paths()}, PLAIN)

    def _paths(self) -> list[str]:
        """What is worth looking at, for users who start at the root."""
        paths = {
            "/api",
            "/api/v1",
            "/apis",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/version",
            *self._health.paths(),
        }
        for resource in self._catalog.all():
            if resource.group:
                paths |= {f"/apis/{resource.group}", f"/apis/{resource.group}/{resource.version}"}
        return sorted(paths)

    async def serve_unknown(self, request: web.BaseRequest, info: RequestInfo, actor: Actor) -> web.StreamResponse:
        if self._elsewhere is not None:
            found = await self._elsewhere(request, info, actor)
            if found is not None:
                return found
        head, _, group = info.path.strip("/").partition("/")
        if head in _WITH_ROUTES or (head == "apis" and self._catalog.is_builtin(group.partition("/")[0])):
            raise status.no_such_path()
        return answers.no_page()


def _is_read_only(path: str) -> bool:
    """Whether Kubernetes has a route for the document. The lists of groups and versions answer every method."""
    parts = path.strip("/").split("/")
    return parts[0] in _WITH_ROUTES or (parts[0] == "apis" and len(parts) == 3)


def _counts(state: State) -> list[tuple[str, int]]:
    return [(qualified(home.plural, home.group), state.count(home)) for home in state.homes()]


def _document(request: web.BaseRequest, made: Made) -> web.Response:
    headers = {"Content-Type": made.content_type, "Vary": "Accept"}
    if made.etag:
        tag = made.etag.strip('"')
        headers["ETag"] = f'"{tag}"'
        known = request.headers.get("If-None-Match", "").split(",")
        if any(one.strip().removeprefix("W/").strip('"') == tag for one in known):
            return web.Response(status=304, headers=headers)
    body = _in_yaml(made.body) if made.content_type.startswith("application/yaml") else made.body
    return web.Response(body=body, headers=headers)


@lru_cache(maxsize=16)
def _in_yaml(body: bytes) -> bytes:
    """Kept: the document of all groups takes a tenth of a second."""
    return as_yaml(body)
