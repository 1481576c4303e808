"""Serves the paths of metrics.k8s.io to the API server's proxy, which has authenticated and authorized the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from aiohttp import web

from shoal.embedded.apiserver import status
from shoal.embedded.kubelets.endpoint.metrics_api import (
    API_VERSION,
    GROUP,
    VERSION,
    MetricsApi,
    chosen,
    group_of,
    resource_list,
)
from shoal.embedded.kubelets.node_view import Obj

PREFIX = f"/apis/{GROUP}"
_ROOT = f"/apis/{API_VERSION}"


class MetricsRoutes:
    def __init__(self, api: MetricsApi, seconds: Callable[[], float]) -> None:
        self._api = api
        self._seconds = seconds

    def routes(self) -> list[web.RouteDef]:
        pods = f"{_ROOT}/namespaces/{{namespace}}/pods"
        handlers = {
            PREFIX: self._group,
            _ROOT: self._resources,
            f"{_ROOT}/nodes": self._nodes,
            f"{_ROOT}/nodes/{{name}}": self._node,
            f"{_ROOT}/pods": self._pods,
            pods: self._pods,
            f"{pods}/{{name}}": self._pod,
        }
        return [web.get(path, handler) for path, handler in handlers.items()]

    async def _group(self, _: web.Request) -> web.StreamResponse:
        return json_answer(group_of(GROUP, (VERSION,)))

    async def _resources(self, _: web.Request) -> web.StreamResponse:
        return json_answer(resource_list())

    async def _nodes(self, request: web.Request) -> web.StreamResponse:
        return self._listed(request, "NodeMetricsList", self._api.node_metrics(self._seconds()))

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        namespace = request.match_info.get("namespace", "")
        return self._listed(request, "PodMetricsList", self._api.pod_metrics(namespace, self._seconds()))

    async def _node(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        return _one(self._api.node_metrics(self._seconds()), "nodemetrics", name, name)

    async def _pod(self, request: web.Request) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        found = self._api.pod_metrics(namespace, self._seconds())
        return _one(found, "podmetrics", name, f"{namespace}/{name}")

    def _listed(self, request: web.Request, kind: str, found: Iterable[Obj]) -> web.Response:
        try:
            if request.query.get("watch", "").lower() in ("1", "true"):
                raise status.method_not_supported("", GROUP)
            wanted = chosen(request.query)
        except status.ApiError as error:
            return json_answer(error.status(), error.code)
        items = [one for one in found if wanted.takes(one)]
        return json_answer({"kind": kind, "apiVersion": API_VERSION, "metadata": {}, "items": items})


def json_answer(obj: Obj, code: int = 200) -> web.Response:
    """A JSON answer with the final newline of API servers; a kubelet's answers have none."""
    return web.Response(status=code, body=msgspec.json.encode(obj) + b"\n", content_type="application/json")


def _one(found: Iterable[Obj], plural: str, name: str, shown: str) -> web.Response:
    for one in found:
        if one["metadata"]["name"] == name:
            return json_answer(one)
    error = status.not_found(plural, GROUP, shown)
    return json_answer(error.status(), error.code)
