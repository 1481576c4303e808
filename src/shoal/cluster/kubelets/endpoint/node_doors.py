"""The kubelet's paths of a whole node: health, figures, pods."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from aiohttp import web

from shoal.cluster.kubelets.endpoint.places import Places
from shoal.cluster.kubelets.endpoint.summary import pod_list, stats_summary
from shoal.cluster.kubelets.sight import Obj

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


class NodeDoors:
    def __init__(self, places: Places, seconds: Callable[[], float]) -> None:
        self._places = places
        self._seconds = seconds

    def routes(self) -> list[web.RouteDef]:
        """Each of them also with the node in front."""
        doors = {
            "/healthz": self._health,
            "/metrics": self._metrics,
            "/pods": self._pods,
            "/stats/summary": self._summary,
        }
        return [web.get(f"{front}{path}", door) for path, door in doors.items() for front in ("", "/nodes/{node}")]

    async def _health(self, request: web.Request) -> web.StreamResponse:
        # Of all nodes together where none is named: the port answers.
        if self._places.is_named(request):
            self._places.node(request)
        return web.Response(text="ok")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._places.node(request).dcgm().encode(), headers={"Content-Type": EXPOSITION})

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        return json_answer(pod_list(self._places.node(request)))

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        return json_answer(stats_summary(self._places.node(request), self._seconds()))


def json_answer(obj: Obj | list[Obj], code: int = 200) -> web.Response:
    return web.Response(status=code, body=msgspec.json.encode(obj), content_type="application/json")
