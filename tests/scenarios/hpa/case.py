"""A case about a HorizontalPodAutoscaler as it is in the files, without its expectation, and its parts as our types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.pod import Pod
from shoal.api.wire import dec_hook, to_quantity
from shoal.autoscale.replicas.history import AutoscalerHistory, Recommendation, ScaleEvent
from shoal.autoscale.replicas.samples import USUAL_WINDOW_S, MetricReading, MetricSample, PodUsage
from shoal.autoscale.replicas.spec import (
    Autoscaler,
    AutoscalerSettings,
    AutoscalerSpec,
    AutoscalerStatus,
    Behavior,
    MetricSpec,
    ScalingRules,
)

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
NOW_S = NOW.timestamp()


class Case(msgspec.Struct, rename="camel"):
    id: str
    level: str
    settings: dict[str, Any] = {}
    hpa: dict[str, Any] = {}
    scale: dict[str, Any] = {}
    pods: list[dict[str, Any]] = []
    other_hpa_selectors: list[dict[str, str]] = []
    metrics: dict[str, Any] = {}
    history: dict[str, Any] = {}
    scale_up_limit_factor: float = 2.0
    current_replicas: int = 0
    recommendation: int = 0
    min_replicas: int = 1
    max_replicas: int = 1
    behavior: dict[str, Any] | None = None
    scaling_rules: dict[str, Any] | None = None
    events_before: list[dict[str, Any]] = []
    replica_change: int = 0
    resource: str = ""
    container: str = ""
    pod_metrics: dict[str, dict[str, Any]] = {}
    pod_usage_milli: dict[str, int] = {}
    pod_request_milli: dict[str, int] = {}
    target_utilization: int | None = None
    target_average_milli: int | None = None


def settings_of(case: Case) -> AutoscalerSettings:
    usual, written = AutoscalerSettings(), case.settings
    gates: Mapping[str, bool] = written.get("featureGates") or {}
    return AutoscalerSettings(
        written.get("tolerance", usual.tolerance),
        written.get("initialReadinessDelaySeconds", usual.initial_readiness_delay_s),
        written.get("cpuInitializationPeriodSeconds", usual.cpu_initialization_s),
        written.get("downscaleStabilizationSeconds", usual.downscale_stabilization_s),
        case.scale_up_limit_factor,
        gates.get("HPAConfigurableTolerance", usual.has_own_tolerance),
        gates.get("PodLevelResources", usual.has_pod_level_resources),
        gates.get("HPAScaleToZero", usual.has_scale_to_zero),
    )


def autoscaler_of(case: Case) -> Autoscaler:
    meta = case.hpa.get("metadata") or {}
    spec = msgspec.convert(case.hpa.get("spec") or {}, AutoscalerSpec, dec_hook=dec_hook)
    status = dict(case.hpa.get("status") or {})
    if status.get("lastScaleTime") is not None:
        status["lastScaleTime"] = _time(status["lastScaleTime"])
    status["conditions"] = [{**one, "lastTransitionTime": None} for one in status.get("conditions") or ()]
    return Autoscaler(meta.get("namespace", ""), meta.get("name", ""), spec, msgspec.convert(status, AutoscalerStatus))


def behavior_of(written: dict[str, Any] | None) -> Behavior | None:
    return None if written is None else msgspec.convert(written, Behavior, dec_hook=dec_hook)


def rules_of(written: dict[str, Any] | None) -> ScalingRules | None:
    return None if written is None else msgspec.convert(written, ScalingRules, dec_hook=dec_hook)


def pods_of(case: Case) -> list[Pod]:
    return [msgspec.convert(_pod(one), Pod, dec_hook=dec_hook) for one in case.pods]


def history_of(written: dict[str, Any], now_s: float = NOW_S) -> AutoscalerHistory:
    kept = written.get("recommendations")
    return AutoscalerHistory(
        None if kept is None else tuple(Recommendation(one["replicas"], now_s + one["at"]) for one in kept),
        events_of(written.get("scaleUpEvents") or (), now_s),
        events_of(written.get("scaleDownEvents") or (), now_s),
    )


def events_of(written: Any, now_s: float = NOW_S) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(one["change"], now_s + one["at"]) for one in written)


def samples_of(written: dict[str, dict[str, Any]]) -> dict[str, MetricSample]:
    return {
        pod: MetricSample(one["valueMilli"], NOW_S + one.get("timestamp", 0), one.get("window", USUAL_WINDOW_S))
        for pod, one in written.items()
    }


def reading_of(metric: MetricSpec, metrics: dict[str, Any]) -> MetricReading:
    if metric.type in ("Resource", "ContainerResource"):
        found = metrics.get("resource", [])
        return _failed(found) or MetricReading(usages=tuple(_usage(one) for one in found))
    source = metric.pods or metric.object or metric.external
    found = (metrics.get(metric.type.lower()) or {}).get(source.metric.name if source is not None else "")
    if metric.type == "Pods":
        return _failed(found) or MetricReading(samples=tuple((one["pod"], _sample(one)) for one in found or ()))
    if metric.type == "Object":
        if found is None:
            return MetricReading(error="there is no such metric")
        return _failed(found) or MetricReading(values_milli=(_milli(found["value"]),))
    return _failed(found) or MetricReading(values_milli=tuple(_milli(one) for one in (found or {}).get("values") or ()))


def _failed(found: Any) -> MetricReading | None:
    is_failed = isinstance(found, dict) and (found.get("error") or found.get("value") == {"error": True})
    return MetricReading(error="the metrics API failed") if is_failed else None


def _usage(one: dict[str, Any]) -> PodUsage:
    containers = tuple(
        (container["name"], {name: to_quantity(text) for name, text in (container.get("usage") or {}).items()})
        for container in one.get("containers") or ()
    )
    return PodUsage(one["pod"], containers, NOW_S + one.get("timestamp", 0), one.get("window", USUAL_WINDOW_S))


def _sample(one: dict[str, Any]) -> MetricSample:
    return MetricSample(_milli(one["value"]), NOW_S + one.get("timestamp", 0), one.get("window", USUAL_WINDOW_S))


def _milli(text: Any) -> int:
    return to_quantity(text).milli_value()


def _pod(one: dict[str, Any]) -> dict[str, Any]:
    ready = {"type": "Ready", "status": one.get("ready"), "lastTransitionTime": _time(one.get("readyTransition"))}
    spec: dict[str, Any] = {
        "containers": [_container(each) for each in one.get("containers") or ()],
        "initContainers": [_container(each) for each in one.get("initContainers") or ()],
    }
    if one.get("podRequests") is not None:
        spec["resources"] = {"requests": one["podRequests"]}
    return {
        "metadata": {
            "name": one["name"],
            "labels": one.get("labels") or {},
            "deletionTimestamp": _time(one.get("deletionTimestamp")),
        },
        "spec": spec,
        "status": {
            "phase": one.get("phase") or "",
            "startTime": _time(one.get("startTime")),
            "conditions": [ready] if one.get("ready") else [],
        },
    }


def _container(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": one["name"],
        "resources": {"requests": one.get("requests") or {}},
        "restartPolicy": one.get("restartPolicy") or "",
    }


def _time(offset_s: float | None) -> str | None:
    return None if offset_s is None else (NOW + timedelta(seconds=offset_s)).isoformat()
