"""Serves the kubelet's paths of a node: health, metrics, pods."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from aiohttp import web

from shoal.embedded.kubelets.endpoint.node_figures import NodeStats
from shoal.embedded.kubelets.endpoint.request_targets import RequestTargets
from shoal.embedded.kubelets.endpoint.summary import pod_list, stats_summary
from shoal.embedded.kubelets.node_view import Obj

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


class NodeRoutes:
    def __init__(self, places: RequestTargets, seconds: Callable[[], float]) -> None:
        self._targets = places
        self._seconds = seconds
        self._figures = NodeStats()

    def routes(self) -> list[web.RouteDef]:
        """Each path also with the name of the node in front."""
        handlers = {
            "/healthz": self._health,
            "/metrics": self._metrics,
            "/metrics/cadvisor": self._cadvisor,
            "/metrics/dcgm": self._dcgm,
            "/metrics/probes": self._probes,
            "/metrics/resource": self._resource,
            "/pods": self._pods,
            "/stats/summary": self._summary,
        }
        return [
            web.get(f"{front}{path}", handler) for path, handler in handlers.items() for front in ("", "/nodes/{node}")
        ]

    async def _health(self, request: web.Request) -> web.StreamResponse:
        # Without a node name, the port answers for all nodes together.
        if self._targets.is_named(request):
            self._targets.node(request)
        return web.Response(text="ok")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        # Earlier versions served DCGM's metrics only here; the path stays for one more release.
        node = self._targets.node(request)
        return _exposition(self._figures.own(node) + node.dcgm().encode())

    async def _dcgm(self, request: web.Request) -> web.StreamResponse:
        return _exposition(self._targets.node(request).dcgm().encode())

    async def _cadvisor(self, request: web.Request) -> web.StreamResponse:
        return _exposition(self._figures.cadvisor(self._targets.node(request), self._seconds()))

    async def _probes(self, request: web.Request) -> web.StreamResponse:
        return _exposition(self._figures.probes(self._targets.node(request), self._seconds()))

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        return _exposition(self._figures.resource(self._targets.node(request), self._seconds()))

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        return json_answer(pod_list(self._targets.node(request)))

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        return json_answer(stats_summary(self._targets.node(request), self._seconds()))


def _exposition(text: bytes) -> web.Response:
    return web.Response(body=text, headers={"Content-Type": EXPOSITION})


def json_answer(obj: Obj | list[Obj], code: int = 200) -> web.Response:
    return web.Response(status=code, body=msgspec.json.encode(obj), content_type="application/json")
