"""Serves the DCGM exporter of each node under its own path, and the list of all exporters, on one port for Prometheus.

A real cluster has one exporter per node, all at the same port. Here one port serves all of them, and `/sd` lists them
in the format of `http_sd_configs`, each node as a target of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from aiohttp import web

from shoal.embedded.kubelets.endpoint.node_routes import EXPOSITION, json_answer
from shoal.embedded.kubelets.endpoint.request_targets import KubeletRefusal
from shoal.embedded.kubelets.node_view import NodeViews, Obj
from shoal.units.errors import one_line

_NEAREST = 3
_LONGEST_NAME = 253


class ExporterRoutes:
    def __init__(self, nodes: NodeViews, figures: Callable[[], str] = str) -> None:
        """`figures` returns metrics that are served beside the fleet's own."""
        self._nodes = nodes
        self._figures = figures
        self._scrapes: dict[int, int] = {}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/nodes/{node}/metrics", self._dcgm),
            web.get("/metrics", self._own),
            web.get("/sd", self._targets),
            web.get("/healthz", self._health),
        ]

    async def _dcgm(self, request: web.Request) -> web.StreamResponse:
        try:
            text = self._text_of(request.match_info["node"])
        except KubeletRefusal as refusal:
            self._count(refusal.code)
            raise
        self._count(200)
        return _exposition(text)

    def _text_of(self, name: str) -> str:
        node = self._nodes.node(name)
        if node is None:
            near = get_close_matches(name[:_LONGEST_NAME], self._nodes.names(), _NEAREST, 0.5)
            hint = f"; nearest: {', '.join(near)}" if near else ""
            raise KubeletRefusal(404, f'node "{one_line(name[:_LONGEST_NAME])}" is not simulated here{hint}')
        if not node.is_reachable():
            raise KubeletRefusal(503, f'node "{name}" cannot be reached')
        return node.dcgm()

    def _count(self, code: int) -> None:
        self._scrapes[code] = self._scrapes.get(code, 0) + 1

    async def _own(self, _: web.Request) -> web.StreamResponse:
        names = self._nodes.names()
        reachable = sum(node.is_reachable() for node in map(self._nodes.node, names) if node is not None)
        lines = [
            "# HELP shoal_fleet_nodes Simulated nodes, by whether they can be reached.",
            "# TYPE shoal_fleet_nodes gauge",
            f'shoal_fleet_nodes{{reachable="true"}} {reachable}',
            f'shoal_fleet_nodes{{reachable="false"}} {len(names) - reachable}',
            "# HELP shoal_fleet_scrapes_total Times that the figures of a node were asked for, by the code answered.",
            "# TYPE shoal_fleet_scrapes_total counter",
            *(f'shoal_fleet_scrapes_total{{code="{code}"}} {number}' for code, number in sorted(self._scrapes.items())),
        ]
        return _exposition("".join(f"{line}\n" for line in lines) + self._figures())

    async def _targets(self, request: web.Request) -> web.StreamResponse:
        # The targets have the host of this request, which the client can reach.
        return json_answer([_target(request.host, name) for name in self._nodes.names()])

    async def _health(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")


def _target(host: str, node: str) -> Obj:
    labels = {"__metrics_path__": f"/nodes/{node}/metrics", "instance": node, "node": node}
    return {"targets": [host], "labels": labels}


def _exposition(text: str) -> web.Response:
    return web.Response(body=text.encode(), headers={"Content-Type": EXPOSITION})
