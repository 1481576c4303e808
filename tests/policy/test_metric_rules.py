"""Rules about metrics that exist and mean something else, beside expressions that are right."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.policy.advice import Obj
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.gpu_software import single_cluster_policy
from shoal.policy.rules.metric_sources import adapter_rules, scrape_intervals
from shoal.policy.rules.metric_values import metric_values
from shoal.policy.rules.monitoring import prometheus_rules
from shoal.policy.rules.triggers import buffer_hours, triggers

NOTHING = ObjectSet(())


def alert(expression: str, text: str = "") -> Obj:
    rule = {"alert": "A", "expr": expression, "annotations": {"summary": text}}
    return {"kind": "PrometheusRule", "spec": {"groups": [{"name": "g", "rules": [rule]}]}}


def found(expression: str, text: str = "") -> list[str]:
    return [each.reason for each in metric_values(alert(expression, text), NOTHING)]


@pytest.mark.parametrize(
    ("expression", "reasons"),
    [
        ("DCGM_FI_PROF_DRAM_ACTIVE > 70", ["RatioAsPercentage"]),
        ('avg_over_time(DCGM_FI_PROF_SM_ACTIVE{pod="a"}[5m]) >= 90', ["RatioAsPercentage"]),
        ("DCGM_FI_PROF_DRAM_ACTIVE > 0.7", []),
        ("DCGM_FI_PROF_DRAM_ACTIVE * 100 > 70", []),
        ("100 * avg_over_time(DCGM_FI_PROF_DRAM_ACTIVE[5m]) > 0.7", []),
        ("100 * DCGM_FI_PROF_DRAM_ACTIVE > 70", []),
        ("100 * avg by (pod) (DCGM_FI_PROF_DRAM_ACTIVE) > 70", []),
        ("100 * max(avg_over_time(DCGM_FI_PROF_DRAM_ACTIVE[5m])) > 70", []),
        ("100 * (DCGM_FI_PROF_DRAM_ACTIVE) > 70", []),
        ("sum(DCGM_FI_PROF_DRAM_ACTIVE) > 4", []),
        ("sum by (Hostname) (DCGM_FI_PROF_DRAM_ACTIVE) > 4", []),
        ("sum without (gpu) (avg_over_time(DCGM_FI_PROF_DRAM_ACTIVE[5m])) > 4", []),
        ("count(DCGM_FI_PROF_DRAM_ACTIVE) > 8", []),
        ('count_values("v", DCGM_FI_PROF_DRAM_ACTIVE) > 8', []),
        ("count_over_time(DCGM_FI_PROF_DRAM_ACTIVE[1h]) < 100", []),
        ("sum_over_time(DCGM_FI_PROF_DRAM_ACTIVE[1h]) > 60", []),
        ("changes(DCGM_FI_PROF_DRAM_ACTIVE[1h]) > 5", []),
        ("resets(DCGM_FI_PROF_DRAM_ACTIVE[1h]) > 5", []),
        ("avg by (pod) (DCGM_FI_PROF_DRAM_ACTIVE) > 70", ["RatioAsPercentage"]),
        ("quantile_over_time(0.9, DCGM_FI_PROF_DRAM_ACTIVE[1h]) > 70", ["RatioAsPercentage"]),
        ("max(max_over_time(DCGM_FI_PROF_DRAM_ACTIVE[1h])) > 70", ["RatioAsPercentage"]),
        ("up * 2 > 1 and DCGM_FI_PROF_DRAM_ACTIVE > 70", ["RatioAsPercentage"]),
        ("sum(up) > 4 and DCGM_FI_PROF_DRAM_ACTIVE > 70", ["RatioAsPercentage"]),
        ("DCGM_FI_DEV_GPU_UTIL > 70", []),
        ("DCGM_FI_PROF_DRAM_ACTIVE > 70 / 100", []),
        ("kueue_admission_wait_time_seconds > 600", ["HistogramAsValue"]),
        ("rate(kueue_admission_wait_time_seconds_sum[1h])", []),
        ("histogram_quantile(0.9, rate(kueue_admission_wait_time_seconds[1h]))", []),
        ("histogram_avg(rate(kueue_admission_wait_time_seconds[5m])) > 60", []),
        ("histogram_fraction(0, 60, rate(kueue_admission_wait_time_seconds[5m])) < 0.9", []),
        ("DCGM_FI_DEV_PCIE_RX_THROUGHPUT > 0", ["NotCollected"]),
        ("(DCGM_FI_DEV_FB_FREE - DCGM_FI_DEV_FB_USED)/DCGM_FI_DEV_FB_FREE * 40", ["NegativeIdleShare"]),
        ("(DCGM_FI_DEV_FB_FREE - DCGM_FI_DEV_FB_USED) / 100", []),
        ("DCGM_FI_DEV_FB_FREE -", []),
        ("DCGM_FI_PROF_DRAM_ACTIVE >", []),
    ],
)
def test_the_value_of_a_metric_is_read_as_the_exporter_means_it(expression: str, reasons: list[str]) -> None:
    assert found(expression) == reasons


@pytest.mark.parametrize(
    ("expression", "text", "is_absent"),
    [
        *(
            ("DCGM_FI_DEV_GPU_TEMP > 80", f"{{{{ $labels.{name} }}}}", True)
            for name in ("gpu_index", "gpu_uuid", "uuid", "model_name", "Hostnme", "pods", "namspace")
        ),
        *(
            ("DCGM_FI_DEV_GPU_TEMP > 80", f"{{{{ $labels.{name} }}}}", False)
            for name in (
                "foo",
                "cluster_name",
                "region",
                "zone",
                "app",
                "DCGM_FI_DEV_SERIAL",
                "pod_labels_app",
                "server",
            )
        ),
        ("avg by (pod) (DCGM_FI_DEV_GPU_UTIL) < 5", "{{ $labels.region }}", True),
        ("DCGM_FI_DEV_GPU_TEMP > 80", "{{ $labels.Hostname }} {{$labels.gpu}} {{ $value }}", False),
        ("avg by (pod) (DCGM_FI_DEV_GPU_UTIL) < 5", "{{ $labels.gpu }}", True),
        ("avg by (pod) (DCGM_FI_DEV_GPU_UTIL) < 5", "{{ $labels.pod }}", False),
        ("avg(DCGM_FI_DEV_GPU_UTIL) without (gpu) < 5", "{{ $labels.pod }}", False),
        ("DCGM_FI_DEV_GPU_TEMP * on(pod) group_left(team) teams", "{{ $labels.team }}", False),
        ("up == 0", "{{ $labels.anything }}", False),
    ],
)
def test_a_text_may_name_labels_that_the_samples_have(expression: str, text: str, is_absent: bool) -> None:
    assert ("LabelNotInAlert" in found(expression, text)) is is_absent


def test_metrics_of_vllm_have_a_colon() -> None:
    (one,) = prometheus_rules(alert("vllm_num_requests_running > 5"), NOTHING)
    assert "vllm:num_requests_running" in one.fix
    assert list(prometheus_rules(alert("vllm:num_requests_running > 5"), NOTHING)) == []


def test_a_query_of_the_adapter_is_restricted_to_its_object() -> None:
    def config(query: str, field: str = "rules") -> Obj:
        return {"data": {"config.yaml": f"{field}:\n- seriesQuery: a\n  metricsQuery: '{query}'\n"}}

    assert [each.path for each in adapter_rules(config("avg(a)"), NOTHING)] == [
        "data[config.yaml].rules[0].metricsQuery"
    ]
    assert list(adapter_rules(config("avg(a)", "externalRules"), NOTHING)) == [], "they may belong to no object"
    assert list(adapter_rules(config("avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"), NOTHING)) == []


@pytest.mark.parametrize(("name", "interval", "count"), [("dcgm", "1s", 1), ("dcgm", "15s", 0), ("web", "1s", 0)])
def test_only_monitors_of_the_gpu_exporter_are_held_to_its_interval(name: str, interval: str, count: int) -> None:
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": name}}, "endpoints": [{"interval": interval}]}
    obj = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "m"}, "spec": spec}
    assert len(list(scrape_intervals(obj, NOTHING))) == count


def scaled(kind: str, **metadata: str) -> Obj:
    return {"spec": {"triggers": [{"type": kind, "metadata": metadata}]}}


@pytest.mark.parametrize(
    ("obj", "reasons"),
    [
        (scaled("aws-sqs-queue"), ["TriggerWithoutCredentials"]),
        (scaled("aws-sqs-queue", identityOwner="operator"), []),
        (scaled("aws-sqs-queue", awsAccessKeyIDFromEnv="KEY"), []),
        (scaled("prometheus", query="sum(rate(a[5m])"), ["InvalidExpression"]),
        (scaled("prometheus", query="sum(rate(a[5m]))"), []),
        (scaled("cron", timezone="Europe/Berln"), ["UnknownTimeZone"]),
        (scaled("cron", timezone="Europe/Berlin"), []),
    ],
)
def test_triggers_have_credentials_queries_and_time_zones(obj: Obj, reasons: list[str]) -> None:
    assert [each.reason for each in triggers(obj, NOTHING)] == reasons


def test_hours_of_a_buffer_name_an_existing_time_zone() -> None:
    def buffer(zone: str) -> Obj:
        return {"kind": "CapacityBuffer", "metadata": {"annotations": {"shoal.dev/buffer-time-zone": zone}}}

    assert [each.reason for each in buffer_hours(buffer("Mars/Base"), NOTHING)] == ["UnknownTimeZone"]
    assert list(buffer_hours(buffer("UTC"), NOTHING)) == []


def test_the_second_cluster_policy_is_named_and_not_the_first() -> None:
    def policy(name: str) -> Obj:
        return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": {}}

    first, second = policy("cluster-policy"), policy("a-policy")
    both = ObjectSet((first, second))
    assert list(single_cluster_policy(first, both)) == []
    assert [each.reason for each in single_cluster_policy(second, both)] == ["SecondClusterPolicy"]
    assert list(single_cluster_policy(second, ObjectSet((second,)))) == []
