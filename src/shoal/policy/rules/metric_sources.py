"""Checks how metrics are collected and passed on: rules of prometheus-adapter, and monitors of dcgm-exporter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.config_map_data import configurations
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import CONFIG_MAP

_MATCHERS = ".LabelMatchers"
_MONITORS = ("ServiceMonitor", "PodMonitor")
_MONITOR_GROUP = "monitoring.coreos.com"
_SECONDS = re.compile(r"([0-9]{1,6})(ms|s)", re.ASCII)
_LEAST_INTERVAL_S = 5


@check(
    Rule(
        "SHL-613",
        "QueryWithoutMatchers",
        "error",
        fault="metricsQuery of prometheus-adapter does not contain <<.LabelMatchers>>",
        effect="each pod gets the same figure, that of all pods of the query",
        fix="write <<.Series>>{<<.LabelMatchers>>} and by (<<.GroupBy>>)",
        links=("https://github.com/kubernetes-sigs/prometheus-adapter/blob/master/docs/config.md",),
        bad="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: adapter-config, namespace: monitoring}
data:
  config.yaml: |
    rules:
    - seriesQuery: DCGM_FI_DEV_GPU_UTIL
      resources: {template: "<<.Resource>>"}
      metricsQuery: 'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"web-.*"})'
""",
        changes=(
            Change(
                """'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"web-.*"})'""",
                "'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'",
            ),
        ),
    ),
    kinds=(CONFIG_MAP,),
    options=CheckOptions(hints=(b"metricsQuery",)),
)
def adapter_rules(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for here, content in configurations(obj, "metricsQuery"):
        # Metrics of externalRules need not belong to an object.
        for at, rule in enumerate(maps(content.get("rules"))):
            query = rule.get("metricsQuery")
            if isinstance(query, str) and query and _MATCHERS not in query:
                yield Advice(
                    "QueryWithoutMatchers",
                    f"{here}.rules[{at}].metricsQuery",
                    "without <<.LabelMatchers>> the query is not restricted to the object that is asked for: all "
                    "pods get the same figure",
                    "write <<.Series>>{<<.LabelMatchers>>} and by (<<.GroupBy>>)",
                )


@check(
    Rule(
        "SHL-614",
        "ScrapedTooOften",
        "warning",
        fault="a monitor of dcgm-exporter scrapes more often than the exporter collects",
        effect="Prometheus stores the same sample many times",
        fix="write an interval of 15s or more, or let the exporter collect more often",
        links=("https://github.com/NVIDIA/dcgm-exporter",),
        bad="""\
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: dcgm-exporter, namespace: monitoring}
spec:
  selector: {matchLabels: {app: nvidia-dcgm-exporter}}
  endpoints: [{port: metrics, interval: 1s}]
""",
        changes=(Change("1s", "15s"),),
    ),
    options=CheckOptions(in_files=True),
)
def scrape_intervals(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    if obj.get("kind") not in _MONITORS or not str(obj.get("apiVersion")).startswith(f"{_MONITOR_GROUP}/"):
        return
    selected = [str(value) for value in string_keys(dig(obj, "spec", "selector", "matchLabels")).values()]
    if not any("dcgm" in text for text in (str(dig(obj, "metadata", "name")), *selected)):
        return
    for field in ("endpoints", "podMetricsEndpoints"):
        for at, endpoint in enumerate(maps(dig(obj, "spec", field))):
            found = _SECONDS.fullmatch(str(endpoint.get("interval")))
            if found is not None and int(found[1]) * (0.001 if found[2] == "ms" else 1) < _LEAST_INTERVAL_S:
                yield Advice(
                    "ScrapedTooOften",
                    f"spec.{field}[{at}].interval",
                    f"{found[0]} is less than the interval in which dcgm-exporter collects, 30 s by default: the same "
                    "sample is stored again",
                    "write 15s or more, or lower the interval of the exporter (--collect-interval) too",
                )
