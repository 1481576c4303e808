"""The series of HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.client.item import Item
from shoal.telemetry.kube_state.series import Family, Labels, add, add_all, common_series, plain_amounts

_VALUES = ("true", "false", "unknown")


class _ScaledTarget(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class _MetricName(ApiStruct, frozen=True):
    name: str = ""


class _MetricAmounts(ApiStruct, frozen=True):
    """What a metric should have, or has."""

    value: Any = None
    average_value: Any = None
    average_utilization: int | None = None


class _MetricSource(ApiStruct, frozen=True):
    """Of all types; each has some of the fields."""

    name: str = ""
    metric: _MetricName = _MetricName()
    target: _MetricAmounts = _MetricAmounts()
    current: _MetricAmounts = _MetricAmounts()


class _ScalingMetric(ApiStruct, frozen=True):
    resource: _MetricSource | None = None
    container_resource: _MetricSource | None = None
    pods: _MetricSource | None = None
    object: _MetricSource | None = None
    external: _MetricSource | None = None


class _ShownSpec(ApiStruct, frozen=True):
    scale_target_ref: _ScaledTarget = _ScaledTarget()
    min_replicas: int = 1
    max_replicas: int = 0
    metrics: tuple[_ScalingMetric, ...] = ()


class _ShownStatus(ApiStruct, frozen=True):
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[_ScalingMetric, ...] | None = None
    """API servers write null here."""
    conditions: tuple[Condition, ...] = ()


class _ShownAutoscaler(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ShownSpec = _ShownSpec()
    status: _ShownStatus = _ShownStatus()


def autoscaler_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no HorizontalPodAutoscaler."""
    scaler = item.read(_ShownAutoscaler)
    meta, spec, status = scaler.metadata, scaler.spec, scaler.status
    kind = "horizontalpodautoscaler"
    found, own = common_series(kind, meta)
    target = spec.scale_target_ref
    about = (
        ("scaletargetref_api_version", target.api_version),
        ("scaletargetref_kind", target.kind),
        ("scaletargetref_name", target.name),
    )
    add(found, f"kube_{kind}_info", (*own, *about))
    replicas = {
        "metadata_generation": meta.generation,
        "spec_min_replicas": spec.min_replicas,
        "spec_max_replicas": spec.max_replicas,
        "status_current_replicas": status.current_replicas,
        "status_desired_replicas": status.desired_replicas,
    }
    add_all(found, kind, own, replicas)
    for one in spec.metrics:
        for labels, value in _values(one, is_target=True):
            add(found, f"kube_{kind}_spec_target_metric", (*own, *labels), value)
    for one in status.current_metrics or ():
        for labels, value in _values(one, is_target=False):
            add(found, f"kube_{kind}_status_target_metric", (*own, *labels), value)
    for condition in status.conditions:
        for text in _VALUES:
            labels = (("condition", condition.type), ("status", text))
            add(found, f"kube_{kind}_status_condition", (*own, *labels), condition.status.lower() == text)
    return found


def _values(metric: _ScalingMetric, *, is_target: bool) -> Iterator[tuple[Labels, float]]:
    for source in (metric.resource, metric.container_resource, metric.pods, metric.object, metric.external):
        if source is None:
            continue
        found = source.target if is_target else source.current
        written = {"value": found.value, "average": found.average_value}
        amounts = dict(plain_amounts({name: amount for name, amount in written.items() if amount is not None}))
        if found.average_utilization is not None:
            amounts["utilization"] = found.average_utilization
        for type_, value in amounts.items():
            yield (("metric_name", source.name or source.metric.name), ("metric_target_type", type_)), value
