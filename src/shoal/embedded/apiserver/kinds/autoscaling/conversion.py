"""One autoscaler in both served versions.

v1 knows one target, the share of cpu. What v2 knows beyond travels through v1 in annotations, as JSON, so that a writer
of v1 loses nothing; the annotations are taken away again on the way back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver.kinds.autoscaling.old_metrics import from_old_metric, to_old_metric
from shoal.embedded.apiserver.kinds.complaints import Obj

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
_CURRENT, _CONDITIONS = f"{_PREFIX}current-metrics", f"{_PREFIX}conditions"
_ALL = (_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS)
_USUAL_UTILIZATION = 80


def convert(obj: Obj, from_version: str, to_version: str) -> Obj:
    """The same autoscaler in the other version; the given one is left as it is. Versions with or without the group."""
    source, wanted = from_version.rpartition("/")[2], to_version.rpartition("/")[2]
    if source == wanted:
        return obj
    return _to_v1(obj) if wanted == "v1" else _to_v2(obj)


def _to_v1(obj: Obj) -> Obj:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    extra: dict[str, str] = {}
    metrics = list(spec.get("metrics") or ())
    plain = _plain_cpu(metrics)
    said = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    if plain is not None:
        said["targetCPUUtilizationPercentage"] = metrics.pop(plain)["resource"]["target"]["averageUtilization"]
    if metrics:
        extra[_METRICS] = _text([to_old_metric(metric) for metric in metrics])
    if "behavior" in spec:
        extra[_BEHAVIOR] = _text(spec["behavior"])
    current = list(status.get("currentMetrics") or ())
    seen = {key: status[key] for key in ("observedGeneration", "lastScaleTime") if key in status}
    seen["currentReplicas"] = status.get("currentReplicas", 0)
    seen["desiredReplicas"] = status.get("desiredReplicas", 0)
    for metric in current:
        now = (metric.get("resource") or {}).get("current") or {}
        if (metric.get("resource") or {}).get("name") == "cpu" and now.get("averageUtilization") is not None:
            seen["currentCPUUtilizationPercentage"] = now["averageUtilization"]
    if current:
        extra[_CURRENT] = _text([to_old_metric(metric, is_status=True) for metric in current])
    if status.get("conditions"):
        extra[_CONDITIONS] = _text(status["conditions"])
    return _made(obj, "v1", said, seen, extra)


def _to_v2(obj: Obj) -> Obj:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    said = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    metrics = [from_old_metric(metric) for metric in _read(annotations, _METRICS) or ()]
    share = spec.get("targetCPUUtilizationPercentage")
    if share is None and not metrics:
        share = _USUAL_UTILIZATION
    if share is not None:
        target = {"type": "Utilization", "averageUtilization": share}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    said["metrics"] = metrics
    if behavior := _read(annotations, _BEHAVIOR):
        said["behavior"] = behavior
    seen = {key: status[key] for key in ("observedGeneration", "lastScaleTime", "currentReplicas") if key in status}
    if not seen.get("currentReplicas"):
        seen.pop("currentReplicas", None)
    seen["desiredReplicas"] = status.get("desiredReplicas", 0)
    current = _read(annotations, _CURRENT)
    seen["currentMetrics"] = [from_old_metric(metric, is_status=True) for metric in current] if current else None
    if conditions := _read(annotations, _CONDITIONS):
        seen["conditions"] = conditions
    return _made(obj, "v2", said, seen, {})


def _made(obj: Obj, version: str, spec: Obj, status: Obj, extra: dict[str, str]) -> Obj:
    metadata = dict(obj.get("metadata") or {})
    kept = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _ALL}
    metadata.pop("annotations", None)
    if annotations := {**kept, **extra}:
        metadata["annotations"] = annotations
    made = {**obj, "apiVersion": f"autoscaling/{version}", "metadata": metadata, "spec": spec}
    if "status" in obj:
        made["status"] = status
    return made


def _plain_cpu(metrics: list[Obj]) -> int | None:
    for place, metric in enumerate(metrics):
        resource = metric.get("resource") or {}
        is_share = (resource.get("target") or {}).get("averageUtilization") is not None
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and is_share:
            return place
    return None


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _read(annotations: dict[str, str], key: str) -> Any:
    try:
        return msgspec.json.decode(annotations[key])
    except (KeyError, msgspec.DecodeError):
        return None
