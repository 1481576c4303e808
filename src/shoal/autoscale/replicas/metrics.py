"""Reads one metric of an autoscaler: from what the metrics API answered to a proposal, its status, or a refusal.

The messages are those of Kubernetes, because people and tools search for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from shoal.api.selectors import LabelSelector
from shoal.autoscale.replicas.proposals import (
    PassFacts,
    Proposal,
    average_proposal,
    per_pod_proposal,
    total,
    utilization_proposal,
    value_proposal,
)
from shoal.autoscale.replicas.samples import MetricFault, MetricReading, MetricSample, container_samples, pod_samples
from shoal.autoscale.replicas.spec import CustomSource, MetricIdentifier, MetricSpec, ResourceSource
from shoal.units.quantity import Quantity

RESOURCE, CONTAINER_RESOURCE, PODS, OBJECT, EXTERNAL = "Resource", "ContainerResource", "Pods", "Object", "External"
Status = dict[str, Any]


class MeasuredMetric(Struct, frozen=True):
    proposal: Proposal
    label: str
    """The metric in messages and in the reason of an Event."""
    status: Status


class UnmeasuredMetric(Struct, frozen=True):
    reason: str
    """Of ScalingActive and of the Event."""
    fault: str
    error: str
    """The fault with the metric that has it."""
    is_spec: bool = False
    """Whether the autoscaler is wrong, not the metrics API."""


def measured(
    metric: MetricSpec, reading: MetricReading, about: PassFacts, namespace: str
) -> MeasuredMetric | UnmeasuredMetric:
    if metric.type == RESOURCE:
        source = metric.resource or ResourceSource()
        found = _resource(metric, source, reading, about)
        return _settled(found, "FailedGetResourceMetric", f"failed to get {source.name} resource metric value")
    if metric.type == CONTAINER_RESOURCE:
        source = metric.container_resource or ResourceSource()
        found = _resource(metric, source, reading, about)
        words = f"failed to get {source.container} container metric value"
        return _settled(found, "FailedGetContainerResourceMetric", words)
    if metric.type == PODS:
        found = _pods(metric.pods or CustomSource(), reading, about)
        return _settled(found, "FailedGetPodsMetric", "failed to get pods metric value")
    if metric.type == OBJECT:
        found = _object(metric.object or CustomSource(), reading, about, namespace)
        return _settled(found, "FailedGetObjectMetric", "failed to get object metric value")
    if metric.type == EXTERNAL:
        custom = metric.external or CustomSource()
        found = _external(custom, reading, about, namespace)
        return _settled(found, "FailedGetExternalMetric", f"failed to get {custom.metric.name} external metric value")
    words = f'unknown metric source type "{metric.type}"'
    return UnmeasuredMetric("InvalidMetricSourceType", words, words, is_spec=True)


def _settled(found: MeasuredMetric | MetricFault, reason: str, words: str) -> MeasuredMetric | UnmeasuredMetric:
    if isinstance(found, MeasuredMetric):
        return found
    return UnmeasuredMetric(reason, found.message, f"{words}: {found.error or found.message}")


# -- resources ------------------------------------------------------------------------------------------------------


def _resource(
    metric: MetricSpec, source: ResourceSource, reading: MetricReading, about: PassFacts
) -> MeasuredMetric | MetricFault:
    target = source.target
    if target.average_value is not None:
        samples = _resource_samples(source, reading)
        found: Proposal | MetricFault = (
            average_proposal(samples, source.name, target.average_value.milli_value(), about)
            if not isinstance(samples, MetricFault)
            else samples
        )
        if isinstance(found, MetricFault):
            return MetricFault(f"failed to get {source.name} usage: {found.message}")
        return MeasuredMetric(found, f"{source.name} resource", _resource_status(metric, source, found))
    if target.average_utilization is None:
        return MetricFault(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    samples = _resource_samples(source, reading)
    if not isinstance(samples, MetricFault):
        found = utilization_proposal(samples, source.name, source.container, target.average_utilization, about)
    else:
        found = samples
    if isinstance(found, MetricFault):
        return MetricFault(f"failed to get {source.name} utilization: {found.message}")
    kind = "container resource" if metric.type == CONTAINER_RESOURCE else "resource"
    label = f"{source.name} {kind} utilization (percentage of request)"
    return MeasuredMetric(found, label, _resource_status(metric, source, found))


def _resource_samples(source: ResourceSource, reading: MetricReading) -> Mapping[str, MetricSample] | MetricFault:
    def fault(words: str) -> MetricFault:
        return MetricFault(f"unable to get metrics for resource {source.name}: {words}")

    if reading.error:
        return fault(f"unable to fetch metrics from resource metrics API: {reading.error}")
    if not reading.usages:
        return fault("no metrics returned from resource metrics API")
    if not source.container:
        return pod_samples(reading.usages, source.name)
    return container_samples(reading.usages, source.name, source.container)


def _resource_status(metric: MetricSpec, source: ResourceSource, found: Proposal) -> Status:
    current: Status = {} if found.utilization is None else {"averageUtilization": found.utilization}
    current["averageValue"] = _milli(found.usage_milli)
    if metric.type == CONTAINER_RESOURCE:
        named = {"container": source.container, "name": source.name, "current": current}
        return {"type": metric.type, "containerResource": named}
    return {"type": metric.type, "resource": {"name": source.name, "current": current}}


# -- custom and external metrics ------------------------------------------------------------------------------------


def _pods(source: CustomSource, reading: MetricReading, about: PassFacts) -> MeasuredMetric | MetricFault:
    if reading.error:
        fault = f"unable to fetch metrics from custom metrics API: {reading.error}"
        return MetricFault(f"unable to get metric {source.metric.name}: {fault}")
    if not reading.samples:
        return MetricFault(f"unable to get metric {source.metric.name}: no metrics returned from custom metrics API")
    target = source.target.average_value
    found = average_proposal(dict(reading.samples), "", target.milli_value() if target is not None else 0, about)
    if isinstance(found, MetricFault):
        return found
    status = {"metric": _identifier(source.metric), "current": {"averageValue": _milli(found.usage_milli)}}
    return MeasuredMetric(found, f"pods metric {source.metric.name}", {"type": PODS, "pods": status})


def _object(
    source: CustomSource, reading: MetricReading, about: PassFacts, namespace: str
) -> MeasuredMetric | MetricFault:
    described, name = source.described_object, source.metric.name

    def status(found: Proposal, key: str) -> Status:
        reference = {"kind": described.kind, "name": described.name, "apiVersion": described.api_version}
        return {
            "type": OBJECT,
            "object": {
                "metric": _identifier(source.metric),
                "current": {key: _milli(found.usage_milli)},
                "describedObject": {field: text for field, text in reference.items() if text},
            },
        }

    def value() -> int | MetricFault:
        if not reading.error and reading.values_milli:
            return reading.values_milli[0]
        fault = f"unable to fetch metrics from custom metrics API: {reading.error or 'no value was returned'}"
        return MetricFault(f"unable to get metric {name}: {described.kind} on {namespace} {described.name}/{fault}")

    if source.target.type == "Value" and source.target.value is not None:
        found = _of_value(value(), source.target.value, about)
        if isinstance(found, MetricFault):
            return found
        return MeasuredMetric(found, f"{described.kind} metric {name}", status(found, "value"))
    if source.target.type == "AverageValue" and source.target.average_value is not None:
        found = _per_pod(value(), source.target.average_value, about)
        if isinstance(found, MetricFault):
            return MetricFault(found.message, f"failed to get {name} object metric: {found.message}")
        label = f"external metric {name}({_selector_words(source.metric.selector)})"
        return MeasuredMetric(found, label, status(found, "averageValue"))
    return MetricFault("invalid object metric source: neither a value target nor an average value target was set")


def _external(
    source: CustomSource, reading: MetricReading, about: PassFacts, namespace: str
) -> MeasuredMetric | MetricFault:
    name, words = source.metric.name, _selector_words(source.metric.selector)

    def value() -> int | MetricFault:
        prefix = f"unable to get external metric {namespace}/{name}/{words}: "
        if reading.error:
            return MetricFault(f"{prefix}unable to fetch metrics from external metrics API: {reading.error}")
        if not reading.values_milli:
            return MetricFault(f"{prefix}no metrics returned from external metrics API")
        return total(reading.values_milli)

    compute: Callable[[int | MetricFault, Quantity, PassFacts], Proposal | MetricFault]
    if source.target.average_value is not None:
        key, target, compute = "averageValue", source.target.average_value, _per_pod
    elif source.target.value is not None:
        key, target, compute = "value", source.target.value, _of_value
    else:
        return MetricFault("invalid external metric source: neither a value target nor an average value target was set")
    found = compute(value(), target, about)
    if isinstance(found, MetricFault):
        return MetricFault(found.message, f"failed to get {name} external metric: {found.message}")
    status = {"metric": _identifier(source.metric), "current": {key: _milli(found.usage_milli)}}
    return MeasuredMetric(found, f"external metric {name}({words})", {"type": EXTERNAL, "external": status})


def _of_value(value: int | MetricFault, target: Quantity, about: PassFacts) -> Proposal | MetricFault:
    return value if isinstance(value, MetricFault) else value_proposal(value, target.milli_value(), about)


def _per_pod(value: int | MetricFault, target: Quantity, about: PassFacts) -> Proposal | MetricFault:
    return value if isinstance(value, MetricFault) else per_pod_proposal(value, target.milli_value(), about)


# -- words ----------------------------------------------------------------------------------------------------------


def _milli(value: int) -> str:
    return str(Quantity.of_milli(value))


def _identifier(metric: MetricIdentifier) -> Status:
    found: Status = msgspec.to_builtins(metric)
    return found


def _selector_words(selector: LabelSelector | None) -> str:
    """A label selector as Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
