"""Builds the HorizontalPodAutoscaler of a ScaledObject as KEDA does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.autoscale.scaled_objects.annotations import is_scale_in_paused, is_scale_out_paused
from shoal.autoscale.scaled_objects.metric_names import COMPOSITE
from shoal.autoscale.scaled_objects.modifiers import target_of
from shoal.autoscale.scaled_objects.spec import AVERAGE_VALUE, USUAL_TARGET, ScaledObjectSpec
from shoal.autoscale.scaled_objects.trigger_sources import Metric, ReadTrigger, external_metric
from shoal.autoscale.scaled_objects.triggers import OWNER_LABEL

_EXCLUDED = "scaledobject.keda.sh/hpa-excluded-labels"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Obj = dict[str, Any]


def autoscaler_object(scaled_object: Obj, spec: ScaledObjectSpec, triggers: Sequence[ReadTrigger]) -> Obj:
    meta = scaled_object["metadata"]
    annotations: Mapping[str, str] = meta.get("annotations") or {}
    target = spec.scale_target_ref
    found: Obj = {
        "minReplicas": spec.autoscaler_min(),
        "maxReplicas": spec.autoscaler_max(),
        "scaleTargetRef": {
            "apiVersion": target.api_version or USUAL_TARGET[0],
            "kind": target.kind or USUAL_TARGET[1],
            "name": target.name,
        },
        "metrics": autoscaler_metrics(meta["name"], spec, triggers),
    }
    if behavior := _behavior(spec, annotations):
        found["behavior"] = behavior
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": spec.autoscaler_name(meta["name"]),
            "namespace": meta["namespace"],
            "labels": _labels(meta, spec, annotations),
            "annotations": {key: text for key, text in annotations.items() if key != _LAST_APPLIED},
            "ownerReferences": [
                {
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "ScaledObject",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": found,
    }


def autoscaler_metrics(name: str, spec: ScaledObjectSpec, triggers: Sequence[ReadTrigger]) -> list[Metric]:
    """External metrics carry the name of their ScaledObject; a formula makes one of them all."""
    modifiers = spec.modifiers()
    chosen = [one.metric for one in triggers if modifiers is None or not one.name]
    if modifiers is not None:
        chosen.append(external_metric(COMPOSITE, modifiers.metric_type or AVERAGE_VALUE, target_of(modifiers)))
    return sorted((_owned(metric, name) for metric in chosen), key=lambda one: str(one["type"]))


def _owned(metric: Metric, name: str) -> Metric:
    if metric["type"] != "External":
        return metric
    external = metric["external"]
    named = {"name": external["metric"]["name"], "selector": {"matchLabels": {OWNER_LABEL: name}}}
    return {**metric, "external": {**external, "metric": named}}


def _labels(meta: Obj, spec: ScaledObjectSpec, annotations: Mapping[str, str]) -> dict[str, str]:
    excluded = set(annotations.get(_EXCLUDED, "").split(","))
    own = {
        "app.kubernetes.io/name": spec.autoscaler_name(meta["name"])[:63],
        "app.kubernetes.io/part-of": meta["name"],
        "app.kubernetes.io/managed-by": "keda-operator",
        OWNER_LABEL: meta["name"],
    }
    return own | {key: text for key, text in (meta.get("labels") or {}).items() if key not in excluded}


def _behavior(spec: ScaledObjectSpec, annotations: Mapping[str, str]) -> Obj:
    """A pause in one direction switches that direction of the autoscaler off."""
    config = spec.advanced.horizontal_pod_autoscaler_config if spec.advanced is not None else None
    behavior: Obj = dict((config.behavior if config is not None else None) or {})
    for key, is_paused in (("scaleDown", is_scale_in_paused), ("scaleUp", is_scale_out_paused)):
        if is_paused(annotations):
            behavior[key] = {**(behavior.get(key) or {}), "selectPolicy": "Disabled"}
    return behavior
