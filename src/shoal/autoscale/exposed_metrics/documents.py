"""The JSON objects of custom.metrics.k8s.io (v1beta1, v1beta2) and external.metrics.k8s.io (v1beta1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from shoal.autoscale.exposed_metrics.gpu_metrics import NAMESPACES, NODES, PODS, ObjectValue
from shoal.units.quantity import Quantity

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
EXTERNAL_VERSION = "v1beta1"
Document = dict[str, Any]
_KINDS = {PODS: "Pod", NODES: "Node", NAMESPACES: "Namespace"}


def metric_value_list(version: str, resource: str, metric: str, values: Iterable[ObjectValue], at: str) -> Document:
    """`at`: the time of the values, as text."""
    items = [_metric_value(version, resource, metric, one, at) for one in values if math.isfinite(one.value)]
    return {"kind": "MetricValueList", "apiVersion": f"{CUSTOM}/{version}", "metadata": {}, "items": items}


def _metric_value(version: str, resource: str, metric: str, one: ObjectValue, at: str) -> Document:
    described: Document = {"kind": _KINDS.get(resource, resource), "apiVersion": "/v1", "name": one.name}
    if one.namespace:
        described["namespace"] = one.namespace
    named: Document = {"metricName": metric, "selector": None}
    if version != "v1beta1":
        named = {"metric": {"name": metric, "selector": None}}
    return {"describedObject": described, **named, "timestamp": at, "value": quantity_text(one.value)}


def external_value_list(values: Iterable[tuple[str, Mapping[str, str], int]], at: str) -> Document:
    """`values`: the name of each metric, its labels, and its value in thousandths."""
    items = [
        {"metricName": name, "metricLabels": dict(labels), "timestamp": at, "value": str(Quantity.of_milli(milli))}
        for name, labels, milli in values
    ]
    version = f"{EXTERNAL}/{EXTERNAL_VERSION}"
    return {"kind": "ExternalMetricValueList", "apiVersion": version, "metadata": {}, "items": items}


def quantity_text(value: float) -> str:
    """As a quantity, to the thousandth."""
    return str(Quantity.of_milli(round(value * 1000)))


def custom_resources(version: str, metrics: Iterable[str], others: Iterable[tuple[str, str, bool]] = ()) -> Document:
    """The discovery document: each metric of each resource. `others`: resource, metric, whether it is namespaced."""
    resources = [
        {
            "name": f"{resource}/{metric}",
            "singularName": "",
            "namespaced": resource == PODS,
            "kind": "MetricValueList",
            "verbs": ["get"],
        }
        for metric in metrics
        for resource in (NAMESPACES, NODES, PODS)
    ]
    resources += [
        {
            "name": f"{resource}/{metric}",
            "singularName": "",
            "namespaced": is_namespaced,
            "kind": "MetricValueList",
            "verbs": ["get"],
        }
        for resource, metric, is_namespaced in others
    ]
    return _resource_list(f"{CUSTOM}/{version}", resources)


def external_resources(metrics: Iterable[str]) -> Document:
    resources = [
        {"name": name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
        for name in metrics
    ]
    return _resource_list(f"{EXTERNAL}/{EXTERNAL_VERSION}", resources)


def _resource_list(group_version: str, resources: list[Document]) -> Document:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
