"""Asks metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io for the metrics of an autoscaler.

An answer that cannot be read is an error of the metric, like an API that does not answer: nothing is scaled by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

from shoal.api.selectors import LabelSelector
from shoal.api.wire import to_quantity
from shoal.autoscale.replicas.metrics import CONTAINER_RESOURCE, EXTERNAL, OBJECT, PODS, RESOURCE
from shoal.autoscale.replicas.samples import USUAL_WINDOW_S, MetricReading, MetricSample, PodUsage
from shoal.autoscale.replicas.spec import CustomSource, MetricSpec, ScaleTargetRef
from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.client.refusals import RefusedError
from shoal.client.scaling import ScalingApi
from shoal.units.durations import DurationError, nanoseconds
from shoal.units.errors import ShoalError, UserError

FindKind = Callable[[str, str], Kind | None]
"""By group and kind."""
_RESOURCES = "/apis/metrics.k8s.io/v1beta1"
_CUSTOM = ("/apis/custom.metrics.k8s.io/v1beta2", "/apis/custom.metrics.k8s.io/v1beta1")
_EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
_UNSERVED = ("could not find the requested resource", "404 page not found")
_UNREADABLE = (KeyError, TypeError, ValueError, UserError, DurationError, msgspec.DecodeError)


class MetricsApis:
    """Asks for the metrics of one pass; equal requests are made once."""

    def __init__(self, api: ScalingApi, find_kind: FindKind) -> None:
        self._api = api
        self._find_kind = find_kind

    async def readings(self, metrics: Iterable[MetricSpec], namespace: str, selector: str) -> list[MetricReading]:
        known: dict[str, MetricReading] = {}
        found = []
        for metric in metrics:
            key = json.dumps(msgspec.to_builtins(_source(metric), enc_hook=str), sort_keys=True)
            if metric.type in (RESOURCE, CONTAINER_RESOURCE):
                key = ""
            if key not in known:
                known[key] = await self._reading(metric, namespace, selector)
            found.append(known[key])
        return found

    async def _reading(self, metric: MetricSpec, namespace: str, selector: str) -> MetricReading:
        try:
            if metric.type in (RESOURCE, CONTAINER_RESOURCE):
                return await self._usages(namespace, selector)
            source = _source(metric)
            if source is None:
                return MetricReading()
            if metric.type == PODS:
                return await self._of_pods(source, namespace, selector)
            if metric.type == OBJECT:
                return await self._of_object(source, namespace)
            return await self._external(source, namespace)
        except (RefusedError, ShoalError) as error:
            return MetricReading(error=str(error))
        except _UNREADABLE as error:
            return MetricReading(error=f"the answer cannot be read: {type(error).__name__}: {error}")

    async def _usages(self, namespace: str, selector: str) -> MetricReading:
        answer = await self._api.ask(f"{_RESOURCES}/namespaces/{namespace}/pods", {"labelSelector": selector})
        return MetricReading(usages=tuple(_usage(one) for one in answer.get("items") or ()))

    async def _of_pods(self, source: CustomSource, namespace: str, selector: str) -> MetricReading:
        query = {"labelSelector": selector, **_metric_query(source, "metricLabelSelector")}
        answer = await self._custom(f"/namespaces/{namespace}/pods/*/{quote(source.metric.name)}", query)
        items = answer.get("items") or ()
        return MetricReading(samples=tuple((one["describedObject"]["name"], _sample(one)) for one in items))

    async def _of_object(self, source: CustomSource, namespace: str) -> MetricReading:
        path = self._object_path(source.described_object, namespace, quote(source.metric.name))
        answer = await self._custom(path, _metric_query(source, "metricLabelSelector"))
        values = [_milli(one["value"]) for one in answer.get("items") or ()]
        return MetricReading(values_milli=tuple(values[:1]))

    def _object_path(self, described: ScaleTargetRef, namespace: str, metric: str) -> str:
        group = described.api_version.rpartition("/")[0]
        if described.kind == "Namespace" and not group:
            return f"/namespaces/{quote(described.name)}/metrics/{metric}"
        kind = self._find_kind(group, described.kind)
        if kind is None:
            raise UserError(f'no matches for kind "{described.kind}" in group "{group}"')
        resource = f"{kind.plural}.{group}" if group else kind.plural
        return f"/namespaces/{namespace}/{resource}/{quote(described.name)}/{metric}"

    async def _external(self, source: CustomSource, namespace: str) -> MetricReading:
        path = f"{_EXTERNAL}/namespaces/{namespace}/{quote(source.metric.name)}"
        answer = await self._api.ask(path, _metric_query(source, "labelSelector"))
        return MetricReading(values_milli=tuple(_milli(one["value"]) for one in answer.get("items") or ()))

    async def _custom(self, path: str, query: Mapping[str, str]) -> Obj:
        """In the newer version, or in the older one if only that is served."""
        for root in _CUSTOM:
            try:
                return await self._api.ask(root + path, query)
            except RefusedError as error:
                if not _is_unserved(error):
                    raise
        raise UserError("no custom metrics API (custom.metrics.k8s.io) registered")


def _is_unserved(error: RefusedError) -> bool:
    """Whether no server is registered for the version, as against a metric that does not exist."""
    return error.code == 404 and any(words in str(error) for words in _UNSERVED)


def _source(metric: MetricSpec) -> CustomSource | None:
    return {PODS: metric.pods, OBJECT: metric.object, EXTERNAL: metric.external}.get(metric.type)


def _metric_query(source: CustomSource, name: str) -> dict[str, str]:
    text = selector_text(source.metric.selector)
    return {name: text} if text else {}


def selector_text(selector: LabelSelector | None) -> str:
    """The text form of a selector of a metric; empty for all series."""
    if selector is None:
        return ""
    parts = []
    for one in selector.selector().requirements or ():
        if one.operator in ("Exists", "DoesNotExist"):
            parts.append(one.key if one.operator == "Exists" else f"!{one.key}")
        elif one.operator == "In" and len(one.values) == 1:
            parts.append(f"{one.key}={one.values[0]}")
        else:
            word = "in" if one.operator == "In" else "notin"
            parts.append(f"{one.key} {word} ({','.join(sorted(one.values))})")
    return ",".join(parts)


def _usage(one: Obj) -> PodUsage:
    containers = tuple(
        (container["name"], {name: to_quantity(text) for name, text in container["usage"].items()})
        for container in one.get("containers") or ()
    )
    window_s = nanoseconds(one["window"]) / 1e9 if "window" in one else USUAL_WINDOW_S
    return PodUsage(one["metadata"]["name"], containers, _seconds(one["timestamp"]), window_s)


def _sample(one: Obj) -> MetricSample:
    window_s = one.get("windowSeconds") or one.get("window")
    return MetricSample(_milli(one["value"]), _seconds(one["timestamp"]), float(window_s or USUAL_WINDOW_S))


def _milli(value: object) -> int:
    return to_quantity(value).milli_value()


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
