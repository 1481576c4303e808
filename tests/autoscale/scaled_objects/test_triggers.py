"""Triggers are read with KEDA's rules, and the values in answers of servers are found or refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.autoscale.scaled_objects.answers import AnswerError, api_value, prometheus_value
from shoal.autoscale.scaled_objects.autoscaler_object import autoscaler_object
from shoal.autoscale.scaled_objects.fallback import ScalerReading, TargetSize
from shoal.autoscale.scaled_objects.polling import PolledTrigger, combined
from shoal.autoscale.scaled_objects.spec import Health, ScaledObjectSpec, Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError
from shoal.autoscale.scaled_objects.trigger_sources import (
    ApiValue,
    PodCount,
    PrometheusQuery,
    ReadTrigger,
    RedisList,
    RedisServer,
)
from shoal.autoscale.scaled_objects.triggers import read_trigger

PROMETHEUS = {"serverAddress": "http://prom:9090/", "query": "sum(q)", "threshold": "2.5"}
API = {"url": "http://api/stats", "valueLocation": "queue.0.len", "targetValue": "5"}
CRON = {"timezone": "UTC", "start": "0 9 * * *", "end": "0 17 * * *", "desiredReplicas": "3"}


def read(kind: str, metadata: dict[str, str], metric_type: str = "", **parameters: str) -> ReadTrigger:
    return read_trigger(Trigger(kind, metadata=metadata, metric_type=metric_type), 1, "ns", parameters, {})


def test_each_trigger_has_its_metric_and_target() -> None:
    found = read("prometheus", {**PROMETHEUS, "activationThreshold": "1", "namespace": "team"})
    assert (found.name, found.target, found.activation) == ("s1-prometheus", 2.5, 1.0)
    assert found.metric["external"]["target"] == {"type": "AverageValue", "averageValue": "2500m"}
    assert isinstance(found.source, PrometheusQuery)
    assert found.source.request.url == "http://prom:9090/api/v1/query"
    assert found.source.request.query == {"query": "sum(q)", "namespace": "team"}
    found = read("kubernetes-workload", {"podSelector": "app=a", "value": "2", "groupByNode": "true"}, "Value")
    assert (found.name, found.metric["external"]["target"]) == ("s1-workload-ns", {"type": "Value", "value": "2"})
    assert isinstance(found.source, PodCount)
    assert found.source.by_node
    found = read("metrics-api", API)
    assert found.name == "s1-metric-api-queue-0-len"
    assert isinstance(found.source, ApiValue)
    assert read("cron", CRON).name == "s1-cron-UTC-09xxx-017xxx"
    found = read("redis", {"address": "[::1]:6379", "listName": "jobs/a", "databaseIndex": "2"}, password="p")  # noqa: S106 - of the test
    assert (found.name, found.target) == ("s1-redis-jobs-a", 5.0)
    assert found.source == RedisList(RedisServer("::1", 6379, 2, "", "p"), "jobs/a")
    found = read("cpu", {"value": "60"}, "Utilization")
    assert found.metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}
    found = read("memory", {"value": "1Gi", "containerName": "c"}, "AverageValue")
    assert found.metric["containerResource"]["container"] == "c"
    assert (found.name, found.source) == ("", None)


def test_credentials_come_from_the_authentication() -> None:
    found = read("prometheus", {**PROMETHEUS, "authModes": "bearer"}, bearerToken="t")
    assert isinstance(found.source, PrometheusQuery)
    assert found.source.request.headers == {"Authorization": "Bearer t"}
    found = read("metrics-api", {**API, "authMode": "apiKey"}, apiKey="k", method="query", keyParamName="key")
    assert isinstance(found.source, ApiValue)
    assert found.source.request.query == {"key": "k"}
    found = read("metrics-api", {**API, "authMode": "basic"}, username="u", password="p")  # noqa: S106 - of the test
    assert isinstance(found.source, ApiValue)
    assert (found.source.request.username, found.source.request.password) == ("u", "p")


FAULTS: list[tuple[str, dict[str, str], str, str]] = [
    (
        "nats",
        {},
        "",
        "no scaler found for type: nats; supported are aws-sqs-queue, cpu, cron, external, external-push, kafka",
    ),
    ("prometheus", {}, "", 'error parsing prometheus metadata: missing required parameter "serverAddress"'),
    ("prometheus", {**PROMETHEUS, "threshold": "many"}, "", 'param "threshold" value "many": it is not a number'),
    ("prometheus", {**PROMETHEUS, "threshold": "NaN"}, "", "it is not a number"),
    ("prometheus", {**PROMETHEUS, "ignoreNullValues": "maybe"}, "", "it is neither true nor false"),
    ("prometheus", {**PROMETHEUS, "authModes": "bearer"}, "", 'missing required parameter "token" in [authParams]'),
    ("prometheus", {**PROMETHEUS, "authModes": "tls"}, "", 'authentication mode "tls" is not supported'),
    ("prometheus", {**PROMETHEUS, "customHeaders": "a"}, "", "write key=value"),
    ("prometheus", {**PROMETHEUS, "timeout": "0"}, "", "it is not positive"),
    ("prometheus", {**PROMETHEUS, "serverAddress": "prom"}, "", "is not an address"),
    ("prometheus", PROMETHEUS, "Utilization", "'Utilization' metric type is unsupported for external metrics"),
    ("kubernetes-workload", {"podSelector": "a in (", "value": "1"}, "", "error parsing pod selector"),
    ("kubernetes-workload", {"podSelector": "a"}, "", "value must be a float greater than 0"),
    ("metrics-api", {**API, "format": "xml"}, "", "must be one of [prometheus json yaml]"),
    ("metrics-api", {**API, "targetValue": "0"}, "", "no targetValue given in metadata"),
    ("cron", {**CRON, "end": "0 9 * * *"}, "", "start and end can not have exactly same time input"),
    ("redis", {"listName": "a"}, "", 'missing required parameter "host"'),
    ("redis", {"listName": "a", "address": "redis"}, "", "write HOST:PORT"),
    ("redis", {"listName": "a", "host": "redis", "port": "99999"}, "", "write HOST:PORT"),
    ("cpu", {"value": "60"}, "", "unknown metric type: , allowed values are 'Utilization' or 'AverageValue'"),
    ("cpu", {"value": "60%"}, "Utilization", "is not a percentage"),
]


@pytest.mark.parametrize(("kind", "metadata", "metric_type", "part"), FAULTS, ids=[row[3][:50] for row in FAULTS])
def test_invalid_triggers_are_refused(kind: str, metadata: dict[str, str], metric_type: str, part: str) -> None:
    with pytest.raises(TriggerError) as refusal:
        read(kind, metadata, metric_type)
    assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "seconds"), [("500", 0.5), ("2s", 2.0), ("8760h", 30.0), ("9" * 5000, 30.0), ("31000", 30.0)]
)
def test_no_trigger_waits_longer_than_30_seconds(written: str, seconds: float) -> None:
    found = read("metrics-api", {**API, "timeout": written})
    assert isinstance(found.source, ApiValue)
    assert found.source.request.timeout_s == seconds


def test_an_answer_whose_value_cannot_be_a_float_is_refused() -> None:
    for body in (b"[" * 100_000, b'{"a": 1%s}' % (b"0" * 400), b'{"a": 1%s}' % (b"0" * 5000)):
        with pytest.raises(AnswerError):
            api_value(body, "json", "a")


# -- answers --------------------------------------------------------------------------------------------------------


def vector(*values: Any) -> bytes:
    result = [{"metric": {}, "value": [1, value]} for value in values]
    return msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}})


SCALAR = msgspec.json.encode({"data": {"resultType": "scalar", "result": [1, "4"]}})
PROMETHEUS_ANSWERS = [
    ("one value", vector("2.5"), True, 2.5),
    ("a scalar", SCALAR, True, 4.0),
    ("an empty result counts as 0", vector(), True, 0.0),
    ("unless that is an error", vector(), False, "the result is empty"),
    ("several series", vector("1", "2"), True, "multiple elements"),
    ("no number", vector("NaN"), True, "must point to a numeric value"),
    ("infinity", vector("+Inf"), True, "must point to a numeric value"),
    ("no JSON", b"oops", True, "cannot be read"),
    ("another form", b'{"data": []}', True, "cannot be read"),
    ("deep JSON", b"[" * 100_000, True, "cannot be read"),
    ("a number without end", b'{"data": {"resultType": "scalar", "result": [1, 1%s]}}' % (b"0" * 400), True, "numeric"),
]


@pytest.mark.parametrize(
    ("_name", "body", "ignores", "wanted"), PROMETHEUS_ANSWERS, ids=[row[0] for row in PROMETHEUS_ANSWERS]
)
def test_the_value_of_a_query(_name: str, body: bytes, ignores: bool, wanted: float | str) -> None:
    if isinstance(wanted, float):
        assert prometheus_value(body, ignores_null=ignores) == wanted
        return
    with pytest.raises(AnswerError, match=wanted):
        prometheus_value(body, ignores_null=ignores)


JSON = b'{"a": {"b.c": [1, {"n": "1500m"}], "t": true}, "big": "2Ki"}'
API_ANSWERS = [
    ("json", JSON, r"a.b\.c.0", 1.0),
    ("json", JSON, r"a.b\.c.1.n", 1.5),
    ("json", JSON, r"a.b\.c.#", 2.0),
    ("json", JSON, "big", 2048.0),
    ("json", JSON, "a.t", "must point to a numeric value"),
    ("json", JSON, "a.x", 'there is no "x"'),
    ("json", JSON, r"a.b\.c.7", 'there is no "7"'),
    ("json", b"{", "a", "the answer is not json"),
    ("yaml", b"a:\n- b: 3\n", "a.0.b", 3.0),
    ("yaml", b"a: [", "a", "the answer is not yaml"),
    ("prometheus", b'q{a="1"} 4\nq{a="2"} 6\n', 'q{a="2"}', 6.0),
    ("prometheus", b"q 4\n", "q", 4.0),
    ("prometheus", b"q 4\n", "r", "is not in the answer"),
    ("prometheus", b"q 4\n", "q{a}", "is not a metric with labels"),
]


@pytest.mark.parametrize(
    ("form", "body", "location", "wanted"), API_ANSWERS, ids=[f"{row[0]} {row[2]}" for row in API_ANSWERS]
)
def test_the_value_at_a_place(form: str, body: bytes, location: str, wanted: float | str) -> None:
    if isinstance(wanted, float):
        assert api_value(body, form, location) == wanted
        return
    with pytest.raises(AnswerError, match=wanted):
        api_value(body, form, location)


# -- polls ----------------------------------------------------------------------------------------------------------

TWO = [
    read_trigger(Trigger("cron", "c", CRON), 0, "ns", {}, {}),
    read_trigger(Trigger("metrics-api", "q", API), 1, "ns", {}, {}),
]
SIZE = TargetSize(4, 4)


def spec(**fields: Any) -> ScaledObjectSpec:
    triggers = [{"type": "cron", "name": "c", "metadata": CRON}, {"type": "metrics-api", "name": "q", "metadata": API}]
    return msgspec.convert({"scaleTargetRef": {"name": "w"}, "triggers": triggers, **fields}, ScaledObjectSpec)


def polls(first: ScalerReading, second: ScalerReading, *, is_active: bool = False) -> list[PolledTrigger]:
    return [PolledTrigger(TWO[0], first), PolledTrigger(TWO[1], second, is_active)]


def test_one_active_trigger_activates_and_one_that_fails_does_not() -> None:
    found = combined(spec(), polls(ScalerReading(), ScalerReading(9000), is_active=True), {}, SIZE)
    assert (found.is_active, found.active, found.has_error) == (True, (TWO[1].name,), False)
    found = combined(spec(), polls(ScalerReading(), ScalerReading(error="away")), {}, SIZE)
    assert (found.is_active, found.has_error, found.errors) == (False, True, {TWO[1].name: "away"})


def test_a_trigger_that_is_replaced_by_the_fallback_is_active() -> None:
    one = spec(fallback={"failureThreshold": 0, "replicas": 3})
    found = combined(one, polls(ScalerReading(), ScalerReading(error="away")), {}, SIZE)
    assert (found.is_active, found.has_error, found.has_fallback) == (True, False, True)
    assert found.values_milli[TWO[1].name] == 15_000


def test_the_health_of_triggers_that_are_gone_is_forgotten() -> None:
    one = spec(fallback={"failureThreshold": 0, "replicas": 3})
    found = combined(one, polls(ScalerReading(), ScalerReading()), {"s7-old": Health(9, "Failing")}, SIZE)
    assert set(found.health) == {TWO[0].name, TWO[1].name}
    assert found.has_fallback is False


def test_a_formula_makes_one_metric_and_decides_the_activity() -> None:
    modifiers = {"formula": "c + q", "target": "2", "activationTarget": "10"}
    one = spec(advanced={"scalingModifiers": modifiers})
    found = combined(one, polls(ScalerReading(3000), ScalerReading(8000)), {}, SIZE)
    assert (found.values_milli, found.is_active) == ({"composite-metric": 11_000}, True)
    found = combined(one, polls(ScalerReading(3000), ScalerReading(1000), is_active=True), {}, SIZE)
    assert (found.values_milli, found.is_active) == ({"composite-metric": 4000}, False)
    found = combined(one, polls(ScalerReading(3000), ScalerReading(error="away")), {}, SIZE)
    assert (found.values_milli, found.is_active, found.errors) == ({}, False, {TWO[1].name: "away"})


def test_cpu_alone_is_always_active() -> None:
    cpu = read_trigger(Trigger("cpu", metadata={"value": "60"}, metric_type="Utilization"), 0, "ns", {}, {})
    found = combined(spec(), [PolledTrigger(cpu, ScalerReading(), True)], {}, SIZE)
    assert (found.is_active, found.values_milli) == (True, {})


# -- the autoscaler -------------------------------------------------------------------------------------------------


def test_the_autoscaler_has_the_metrics_limits_and_labels() -> None:
    meta = {"name": "w-so", "namespace": "ns", "uid": "u", "labels": {"team": "a", "x": "y"}}
    notes = {
        "scaledobject.keda.sh/hpa-excluded-labels": "x",
        "autoscaling.keda.sh/paused-scale-in": "true",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    one = spec(maxReplicaCount=7)
    found = autoscaler_object({"metadata": {**meta, "annotations": notes}}, one, TWO)
    assert found["metadata"]["name"] == "keda-hpa-w-so"
    assert found["metadata"]["labels"]["team"] == "a"
    assert "x" not in found["metadata"]["labels"]
    assert set(found["metadata"]["annotations"]) == set(list(notes)[:2])
    assert (found["spec"]["minReplicas"], found["spec"]["maxReplicas"]) == (1, 7)
    assert found["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
    assert found["spec"]["behavior"] == {"scaleDown": {"selectPolicy": "Disabled"}}
    selector = {"matchLabels": {"scaledobject.keda.sh/name": "w-so"}}
    assert [one["external"]["metric"] for one in found["spec"]["metrics"]] == [
        {"name": trigger.name, "selector": selector} for trigger in TWO
    ]
    modified = spec(advanced={"scalingModifiers": {"formula": "c + q", "target": "2"}})
    (metric,) = autoscaler_object({"metadata": meta}, modified, TWO)["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] == "composite-metric"
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "2"}
