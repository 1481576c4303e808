"""Serves custom.metrics.k8s.io to the API server's proxy: the use of GPUs by pods, nodes and namespaces.

The series are those of the nodes' exporters, read again when they are older than a scrape. Rejected: a metrics adapter
beside a Prometheus server, which a cluster for tests would have to install first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from aiohttp import web

from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.autoscale.exposed_metrics.documents import (
    CUSTOM,
    CUSTOM_VERSIONS,
    custom_resources,
    metric_value_list,
)
from shoal.autoscale.exposed_metrics.gpu_metrics import (
    NAMESPACES,
    NODES,
    PODS,
    ObjectValue,
    is_gpu_metric,
    metric_names,
    object_values,
)
from shoal.autoscale.exposed_metrics.prometheus_metrics import ObjectQuestion
from shoal.embedded.apiserver import status
from shoal.embedded.kubelets.endpoint.metrics_api import group_of
from shoal.embedded.kubelets.endpoint.metrics_routes import json_answer
from shoal.embedded.kubelets.endpoint.summary import rfc3339
from shoal.embedded.kubelets.node_view import NodeViews, Obj
from shoal.prometheus.samples import MetricLine, samples_of
from shoal.units.errors import ShoalError, UserError

CUSTOM_PREFIX = f"/apis/{CUSTOM}"
_OLD_S = 10.0
_Labels = Mapping[str, str]


class SeriesSource(Protocol):
    """The series of the exporters of GPUs."""

    def read(self) -> tuple[Sequence[MetricLine], float]:
        """And when they were read."""
        ...

    def pod_labels(self) -> Mapping[tuple[str, str], _Labels]:
        """By namespace and name."""
        ...


class OtherMetrics(Protocol):
    """Metrics of objects from elsewhere, such as a Prometheus server."""

    def seconds(self) -> float:
        """The time of the values."""
        ...

    def resources(self) -> Sequence[tuple[str, str, bool]]:
        """Resource, metric, and whether its objects are in namespaces."""
        ...

    async def object_values(self, asked: ObjectQuestion, metric: str, selector: Selector) -> list[ObjectValue] | None:
        """`None`: there is no such metric. Raises UserError or TemporaryError."""
        ...


class GpuSeries:
    """Implements SeriesSource: of all exporters of simulated nodes."""

    def __init__(self, nodes: NodeViews, seconds: Callable[[], float]) -> None:
        self._nodes = nodes
        self._seconds = seconds
        self._read_s = float("-inf")
        self._series: Sequence[MetricLine] = ()

    def read(self) -> tuple[Sequence[MetricLine], float]:
        """And when they were read."""
        now_s = self._seconds()
        if now_s - self._read_s >= _OLD_S:
            nodes = [node for name in self._nodes.names() if (node := self._nodes.node(name)) is not None]
            self._series = [line for node in nodes if node.is_reachable() for line in samples_of(node.dcgm())]
            self._read_s = now_s
        return self._series, self._read_s

    def pod_labels(self) -> dict[tuple[str, str], _Labels]:
        found: dict[tuple[str, str], _Labels] = {}
        for name in self._nodes.names():
            node = self._nodes.node(name)
            for pod, _ in node.pod_usage() if node is not None and node.is_reachable() else ():
                meta = pod["metadata"]
                found[meta["namespace"], meta["name"]] = meta.get("labels") or {}
        return found


class CustomMetricsRoutes:
    def __init__(
        self, series: SeriesSource, node_labels: Callable[[str], _Labels], others: OtherMetrics | None = None
    ) -> None:
        self._series = series
        self._others = others
        self._node_labels = node_labels

    def routes(self) -> list[web.RouteDef]:
        found = [web.get(CUSTOM_PREFIX, self._group)]
        for version in CUSTOM_VERSIONS:
            root = f"{CUSTOM_PREFIX}/{version}"
            found += [
                web.get(root, self._resources),
                web.get(f"{root}/nodes/{{name}}/{{metric}}", self._of(NODES)),
                # Kubernetes' autoscaler asks for every object but namespaces in the namespace of the autoscaler.
                web.get(f"{root}/namespaces/{{namespace}}/nodes/{{name}}/{{metric}}", self._of(NODES)),
                web.get(f"{root}/namespaces/{{name}}/metrics/{{metric}}", self._of(NAMESPACES)),
                web.get(f"{root}/namespaces/{{namespace}}/pods/{{name}}/{{metric}}", self._of(PODS)),
                web.get(f"{root}/namespaces/{{namespace}}/{{resource}}/{{name}}/{{metric}}", self._of_others),
                web.get(f"{root}/{{resource}}/{{name}}/{{metric}}", self._of_others),
            ]
        return found

    async def _group(self, _: web.Request) -> web.StreamResponse:
        return json_answer(group_of(CUSTOM, CUSTOM_VERSIONS))

    async def _resources(self, request: web.Request) -> web.StreamResponse:
        others = self._others.resources() if self._others is not None else ()
        return json_answer(custom_resources(_version(request), metric_names(self._series.read()[0]), others))

    def _of(self, resource: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                found = await self._elsewhere(request, resource)
                return json_answer(self._values(request, resource) if found is None else found)
            except status.ApiError as error:
                return json_answer(error.status(), error.code)

        return answer

    async def _elsewhere(self, request: web.Request, resource: str) -> Obj | None:
        """`None`: it is no metric of others. Metrics of GPUs are those of exporters in any case."""
        metric, name = request.match_info["metric"], request.match_info["name"]
        if self._others is None or is_gpu_metric(metric):
            return None
        namespace = request.match_info.get("namespace", "")
        names: tuple[str, ...] = () if name == "*" else (name,)
        if name == "*" and resource == PODS and "labelSelector" in request.query:
            selector = _selector(request, "labelSelector")
            labels = self._series.pod_labels().items()
            names = tuple(sorted(key[1] for key, one in labels if key[0] == namespace and selector.matches(one)))
            if not names:
                return metric_value_list(_version(request), resource, metric, (), "")
        try:
            asked = ObjectQuestion(resource, namespace, names)
            values = await self._others.object_values(asked, metric, _selector(request, "metricLabelSelector"))
        except ShoalError as error:
            raise status.ApiError(500, "InternalError", f"Internal error occurred: {error}") from None
        if not values:
            return None
        return metric_value_list(_version(request), resource, metric, values, rfc3339(self._others.seconds()))

    async def _of_others(self, request: web.Request) -> web.StreamResponse:
        """No other objects have metrics of GPUs."""
        found = request.match_info
        try:
            values = await self._elsewhere(request, found["resource"])
        except status.ApiError as refusal:
            return json_answer(refusal.status(), refusal.code)
        if values is not None:
            return json_answer(values)
        words = f"the server could not find the metric {found['metric']} for {found['resource']} {found['name']}"
        error = status.ApiError(404, "NotFound", words)
        return json_answer(error.status(), error.code)

    def _values(self, request: web.Request, resource: str) -> Obj:
        metric, name = request.match_info["metric"], request.match_info["name"]
        namespace = request.match_info.get("namespace", "") if resource == PODS else ""
        series, at_s = self._series.read()
        chosen = _selector(request, "metricLabelSelector")
        values = [
            one
            for one in object_values(series, resource, metric, chosen)
            if one.namespace == namespace and name in ("*", one.name)
        ]
        if name == "*" and "labelSelector" in request.query:
            values = self._labelled(values, resource, _selector(request, "labelSelector"))
        if not values and name != "*":
            shown = f"{namespace}/{name}" if namespace else name
            words = f"the server could not find the metric {metric} for {resource} {shown}"
            raise status.ApiError(404, "NotFound", words)
        return metric_value_list(_version(request), resource, metric, values, rfc3339(at_s))

    def _labelled(self, values: Sequence[ObjectValue], resource: str, selector: Selector) -> list[ObjectValue]:
        if resource == NODES:
            return [one for one in values if selector.matches(self._node_labels(one.name))]
        labels = self._series.pod_labels()
        return [one for one in values if selector.matches(labels.get((one.namespace, one.name), {}))]


def _version(request: web.Request) -> str:
    return request.path.removeprefix(f"{CUSTOM_PREFIX}/").partition("/")[0]


def _selector(request: web.Request, name: str) -> Selector:
    try:
        return parse_label_selector(request.query.get(name, ""))
    except UserError as error:
        raise status.bad_request(f"unable to parse requirement: {error.what}") from None
