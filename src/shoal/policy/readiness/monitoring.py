"""Readiness of monitoring: scrape interval, dashboards, alerts, cost of idle GPUs, metrics of queues."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Obj
from shoal.policy.alert_rules import prometheus_rule
from shoal.policy.diagnosis.cluster_facts import few, labels_of, name_of
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import CONFIG_MAP, DEPLOYMENT, PROMETHEUS_RULE
from shoal.policy.readiness.gpu_software import (
    POD_MONITOR,
    SERVICE_MONITOR,
    arguments_of,
    name_list,
    programs,
)
from shoal.policy.readiness.outcomes import (
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    RecordedHistory,
    failed,
    manual,
    not_applicable,
    passed,
)
from shoal.units.calendar_windows import rfc3339
from shoal.units.durations import DurationError, nanoseconds

_MOST_S = 30
_STALE_MS = 5 * 60_000
_NS = 10**9
DASHBOARD_LABEL = "grafana_dashboard"
_PANELS = (
    ("utilization", ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")),
    ("temperature", ("DCGM_FI_DEV_GPU_TEMP",)),
    ("memory", ("DCGM_FI_DEV_FB_USED",)),
    ("NVLink", ("NVLINK",)),
)
_ALERTS = (
    ("temperature", ("DCGM_FI_DEV_GPU_TEMP",)),
    ("underutilization", ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")),
    ("memory leaks", ("deriv(DCGM_FI_DEV_FB_USED", "delta(DCGM_FI_DEV_FB_USED")),
    ("NCCL hangs", ("NVLINK", "nccl")),
)
_COST_PROGRAMS = ("opencost", "kubecost", "cost-analyzer")
_NO_RULES = "create the alerts"


def _gpu_monitors(facts: ReadinessFacts) -> list[Obj]:
    return [
        one
        for kind in (SERVICE_MONITOR, POD_MONITOR)
        for one in facts.cluster.all(kind)
        if any(word in text for word in ("dcgm", "gpu") for text in (name_of(one), str(one.get("spec"))))
    ]


def _interval(facts: ReadinessFacts) -> Outcome:
    monitors = _gpu_monitors(facts)
    if not monitors:
        return failed(
            "no ServiceMonitor or PodMonitor selects an exporter of GPU metrics",
            "create one",
            "shoal upgrade --set dcgmExporter.serviceMonitor.enabled=true",
        )
    slow, unset = [], []
    for monitor in monitors:
        for endpoint in (*maps(dig(monitor, "spec", "endpoints")), *maps(dig(monitor, "spec", "podMetricsEndpoints"))):
            written = str(endpoint.get("interval") or "")
            if not written:
                unset.append(name_of(monitor))
            elif _seconds(written) > _MOST_S:
                slow.append(f"{name_of(monitor)}: {written}")
    if slow:
        return failed(f"metrics of GPUs are read less often than every {_MOST_S} s: {few(slow)}", "set interval: 30s")
    if unset:
        return manual(
            f"{few(unset)} use the interval of the Prometheus",
            f"check that it is at most {_MOST_S} s",
            "kubectl get prometheus -A -o jsonpath='{.items[*].spec.scrapeInterval}'",
        )
    return passed(f"{name_list(monitors)}: at most {_MOST_S} s")


def _seconds(text: str) -> float:
    try:
        return nanoseconds(text) / _NS
    except DurationError:
        return float("inf")


def _dashboards(facts: ReadinessFacts) -> Outcome:
    boards = [one for one in facts.cluster.all(CONFIG_MAP) if DASHBOARD_LABEL in labels_of(one)]
    text = "\n".join(str(value) for one in boards for value in string_keys(one.get("data")).values())
    missing = [name for name, metrics in _PANELS if not any(metric in text for metric in metrics)]
    if not boards:
        return manual(
            f"no ConfigMap has the label {DASHBOARD_LABEL}; dashboards may be stored in Grafana itself",
            "check that one shows utilization, temperature, memory and NVLink",
        )
    if missing:
        return failed(f"{len(boards)} dashboards, and none shows {', '.join(missing)}", "add these panels")
    return passed(f"{len(boards)} dashboards show utilization, temperature, memory and NVLink")


def expressions(facts: ReadinessFacts) -> Iterator[str]:
    """Of all alerts."""
    for rule in facts.cluster.all(PROMETHEUS_RULE):
        for group in maps(dig(rule, "spec", "groups")):
            for one in maps(group.get("rules")):
                if one.get("alert"):
                    yield str(one.get("expr") or "")


def _alerts(facts: ReadinessFacts) -> Outcome:
    found = list(expressions(facts))
    missing = [name for name, words in _ALERTS if not any(word in text for text in found for word in words)]
    if missing:
        return failed(
            f"{len(found)} alerts, and none is about {', '.join(missing)}",
            _NO_RULES,
            "shoal alerts | kubectl apply -f -",
            corrections=[prometheus_rule("shoal-alerts", "monitoring", {})],
        )
    return passed(f"{len(found)} alerts cover {', '.join(name for name, _ in _ALERTS)}")


def _idle_cost(facts: ReadinessFacts) -> Outcome:
    tools = programs(facts.cluster, *_COST_PROGRAMS)
    own = [
        one
        for one in programs(facts.cluster, "shoal")
        if any(word.startswith("--history") for word in arguments_of(one))
    ]
    if tools or own:
        return passed(f"costs are recorded by {name_list([*own, *tools])}")
    if facts.history is not None:
        return _of_history(facts.history)
    return manual(
        "no program in the cluster is seen to record costs; Shoal may run outside of it",
        "let Shoal keep a history, which shoal cost reads",
        "shoal run --history FOLDER",
        "shoal cost --window week",
    )


def _of_history(history: RecordedHistory) -> Outcome:
    since, until = history.since_ms, history.until_ms
    if since is None or until is None:
        what = f"the history in {history.place} has no record yet"
    elif history.now_ms - until > _STALE_MS:
        what = f"the history in {history.place} has no record after {rfc3339(until)}"
    else:
        return passed(f"costs are recorded since {rfc3339(since)}, in {history.place}")
    return failed(what, "start the process that records it: shoal up, or shoal run with --history", "shoal status")


def _queue_metrics(facts: ReadinessFacts) -> Outcome:
    monitors = [
        one
        for kind in (SERVICE_MONITOR, POD_MONITOR)
        for one in facts.cluster.all(kind)
        if any(word in text for word in ("kueue", "volcano", "shoal") for text in (name_of(one), str(one.get("spec"))))
    ]
    if monitors:
        return passed(f"{name_list(monitors)}")
    if not programs(facts.cluster, "kueue", "volcano", "shoal"):
        return not_applicable("no controller of queues is seen in the cluster")
    return failed(
        "no ServiceMonitor or PodMonitor selects the controller of the queues",
        "let Prometheus read kueue_pending_workloads and kueue_admission_wait_time_seconds",
        "shoal upgrade --set metrics.serviceMonitor.enabled=true",
    )


_MONITORS = (SERVICE_MONITOR, POD_MONITOR)
CHECKS = (
    ReadinessCheck("scrape-interval", "GPU metrics are read at least every 30 s", _interval, _MONITORS),
    ReadinessCheck("dashboards", "Dashboards of utilization, temperature, memory, NVLink", _dashboards, (CONFIG_MAP,)),
    ReadinessCheck(
        "alerts",
        "Alerts of temperature, underutilization, leaks, NCCL hangs",
        _alerts,
        (PROMETHEUS_RULE,),
        ("OldMetricName", "UsedByFree", "XidIsAGauge", "RateOfGauge"),
    ),
    ReadinessCheck("idle-cost", "The cost of idle GPUs is recorded", _idle_cost, (DEPLOYMENT,)),
    ReadinessCheck(
        "queue-metrics", "Pending workloads and waits are metrics", _queue_metrics, (*_MONITORS, DEPLOYMENT)
    ),
)
