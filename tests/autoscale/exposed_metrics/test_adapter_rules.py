"""The rules of prometheus-adapter say which series are which metrics, and how their values are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.autoscale.exposed_metrics.adapter_rules import AdapterRule, Query, read_rules, rendered
from shoal.units.errors import UserError, Where

RULE: dict[str, Any] = {
    "seriesQuery": '{__name__=~"^http_.*"}',
    "resources": {"overrides": {"kube_ns": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
    "name": {"matches": "^(.*)_total$"},
    "metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)",
}


def rule(**changed: Any) -> AdapterRule:
    return read_rules({"rules": [{**RULE, **changed}]}, Where(path="rules.yaml")).custom[0]


@pytest.mark.parametrize(
    ("name", "series", "metric"),
    [
        ({"matches": "^(.*)_total$"}, "http_requests_total", "http_requests"),
        ({"matches": "^(.*)_total$"}, "http_requests", None),
        ({"matches": "^(.*)_total$", "as": "${1}_per_second"}, "http_requests_total", "http_requests_per_second"),
        ({"matches": "http_(.*)_(total)", "as": "$2_$1"}, "http_requests_total", "total_requests"),
        ({}, "http_requests_total", "http_requests_total"),
        ({"as": "waiting"}, "http_requests_total", "waiting"),
    ],
)
def test_a_metric_is_named_by_its_series(name: dict[str, str], series: str, metric: str | None) -> None:
    assert rule(name=name).metric(series) == metric


def test_filters_choose_series() -> None:
    chosen = rule(name={}, seriesFilters=[{"isNot": "_seconds_total$"}, {"is": "^http"}])
    assert chosen.metric("http_requests_total") == "http_requests_total"
    assert chosen.metric("http_wait_seconds_total") is None
    assert chosen.metric("grpc_requests_total") is None


def test_labels_name_objects_by_overrides_and_by_a_template() -> None:
    found = rule()
    assert (found.resource("pod"), found.resource("kube_ns"), found.resource("job")) == ("pods", "namespaces", None)
    assert (found.label_of("pods"), found.label_of("services")) == ("pod", "")
    found = rule(resources={"template": "kube_<<.Group>>_<<.Resource>>", "overrides": {}})
    assert found.resource("kube_apps_deployment") == "deployments.apps"
    assert found.label_of("deployments.apps") == "kube_apps_deployment"
    assert found.resource("pod") is None


def test_a_query_is_made_of_the_template() -> None:
    query = Query("q", {"ns": ("a",), "pod": ("p-1", "p.2"), "any": ()}, ("pod",))
    text = 'sum(<<.Series>>{<<.LabelMatchers>>,x="<<index .LabelValuesByName "pod">>"}) by (<<.GroupBy>>)'
    assert rendered(text, query, Where()) == (r'sum(q{ns="a",pod=~"p\\-1|p\\.2",x="p-1|p.2"}) by (pod)')


def test_a_value_cannot_leave_its_matcher() -> None:
    query = Query("q", {"ns": ('a"} or vector(1) #',)}, ())
    assert rendered("<<.Series>>{<<.LabelMatchers>>}", query, Where()) == 'q{ns="a\\"} or vector(1) #"}'


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"metricsQuery": ""}, "rules.yaml.rules[0].metricsQuery: is missing"),
        ({"seriesQuery": ""}, "seriesQuery: is missing"),
        ({"name": {"matches": "("}}, 'name.matches: "(" is not a pattern'),
        ({"metricsQuery": "<<.Serie>>"}, '"<<.Serie>>" is not known'),
        ({"metricsQuery": "<<.Series"}, '"<<" has no ">>"'),
        ({"seriesFilters": [{"is": "["}]}, "seriesFilters[0]"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as refusal:
        rule(**changed)
    assert words in str(refusal.value)
