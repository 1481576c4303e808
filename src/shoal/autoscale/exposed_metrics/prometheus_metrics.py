"""Finds which metrics the rules of prometheus-adapter give, and the query for the value of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from shoal.api.selectors import Selector
from shoal.autoscale.exposed_metrics.adapter_rules import NAME, NAMESPACE, AdapterRule, AdapterRules, Query, rendered
from shoal.units.errors import UserError, Where

_HERE = Where()
Labels = Mapping[str, str]


class FoundMetric(Struct, frozen=True):
    rule: AdapterRule
    series: str
    is_namespaced: bool


class KnownMetrics(Struct, frozen=True):
    custom: Mapping[tuple[str, str], FoundMetric] = {}
    """By resource and metric."""
    external: Mapping[str, FoundMetric] = {}


class ObjectQuestion(Struct, frozen=True):
    """Whose values are asked for. `names`: of the objects; none: all in the namespace."""

    resource: str
    namespace: str
    names: tuple[str, ...] = ()


def known_metrics(
    rules: AdapterRules, custom: Sequence[Iterable[Labels]], external: Sequence[Iterable[Labels]]
) -> KnownMetrics:
    """`custom`, `external`: the series that each rule found. The first rule for a metric counts."""
    by_object: dict[tuple[str, str], FoundMetric] = {}
    for rule, found in zip(rules.custom, custom, strict=True):
        for labels in found:
            metric = rule.metric(labels.get(NAME, ""))
            if metric is None:
                continue
            resources = {one for label in labels if (one := rule.resource(label)) is not None}
            for resource in resources:
                is_namespaced = NAMESPACE in resources and resource != NAMESPACE and rule.written.resources.namespaced
                by_object.setdefault((resource, metric), FoundMetric(rule, labels[NAME], is_namespaced))
    by_name: dict[str, FoundMetric] = {}
    for rule, found in zip(rules.external, external, strict=True):
        for labels in found:
            if (metric := rule.metric(labels.get(NAME, ""))) is not None:
                by_name.setdefault(metric, FoundMetric(rule, labels[NAME], rule.written.resources.namespaced))
    return KnownMetrics(by_object, by_name)


def object_query(found: FoundMetric, asked: ObjectQuestion, selector: Selector) -> tuple[str, str]:
    """The query, and the label by which its result names objects. Raises UserError."""
    label = found.rule.label_of(asked.resource)
    labels = {**_chosen(selector), label: asked.names}
    if found.is_namespaced and asked.namespace:
        labels[found.rule.label_of(NAMESPACE)] = (asked.namespace,)
    template = found.rule.written.metrics_query
    return rendered(template, Query(found.series, labels, (label,)), _HERE.below("metricsQuery")), label


def external_query(found: FoundMetric, namespace: str, selector: Selector) -> str:
    """In a namespace only the series of that namespace, unless the rule says otherwise. Raises UserError."""
    labels = _chosen(selector)
    label = found.rule.label_of(NAMESPACE)
    if found.is_namespaced and label:
        labels[label] = (namespace,)
    return rendered(found.rule.written.metrics_query, Query(found.series, labels, ()), _HERE.below("metricsQuery"))


def _chosen(selector: Selector) -> dict[str, tuple[str, ...]]:
    found = {}
    for one in selector.requirements or ():
        if one.operator != "In":
            raise UserError(f"a metric selector with the operator {one.operator} is not supported; use equality or In")
        found[one.key] = tuple(one.values)
    return found


# -- answers --------------------------------------------------------------------------------------------------------


class _Sample(Struct, frozen=True):
    metric: dict[str, str] = {}
    value: tuple[float, str] = (0.0, "NaN")


class _Data(Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(Struct, frozen=True):
    data: _Data


class _Series(Struct, frozen=True):
    data: list[dict[str, str]] = []


def series_of(body: bytes) -> list[dict[str, str]]:
    """The label sets in an answer. Raises UserError."""
    try:
        return msgspec.json.decode(body, type=_Series).data
    except msgspec.DecodeError as error:
        raise UserError(f"the answer of prometheus cannot be read: {error}") from None


def samples_in(body: bytes) -> list[tuple[dict[str, str], float]]:
    """Labels and finite values in the answer to an instant query. Raises UserError."""
    try:
        data = msgspec.json.decode(body, type=_Answer).data
        if data.result_type == "scalar":
            found = [_Sample({}, msgspec.json.decode(data.result, type=tuple[float, str]))]
        else:
            found = msgspec.json.decode(data.result, type=list[_Sample])
        values = [(one.metric, float(one.value[1])) for one in found]
    except (msgspec.DecodeError, ValueError) as error:
        raise UserError(f"the answer of prometheus cannot be read: {error}") from None
    return [one for one in values if math.isfinite(one[1])]
