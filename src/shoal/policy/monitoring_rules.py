"""Checks the expressions of PrometheusRules for mistakes about the metrics of GPUs.

Rejected: a parser of PromQL. The faults show in the names next to a few functions and operators; an expression of
another form has no advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps
from shoal.policy.gpu_metrics import GAUGES, METRICS, RATIOS

_NAME = re.compile(r"\b[a-z][a-z0-9_]+\b")
_LABELS = r"(?:\{[^{}]*\})?"
_USED_BY_FREE = re.compile(rf"(\w*fb_used){_LABELS}\s*/\s*(\w*fb_free)\b", re.IGNORECASE)
_THRESHOLD = re.compile(r"\)?\s*>=?\s*([0-9]+(?:\.[0-9]+)?)")
_XID = re.compile(r"DCGM_FI_DEV_XID_ERRORS\s*\{[^{}]*\bxid\s*=\s*\"([0-9]+)\"")
_RATE = re.compile(r"\b(rate|irate|increase)\(\s*(\w+)")
_NO_TRAFFIC = re.compile(r"\b(?:rate|increase)\(\s*\w*nvlink_bandwidth_total[^()]*\)\s*==\s*0", re.IGNORECASE)
_POD_LABELS = re.compile(r"\bkube_pod_labels\s*\{[^{}]*\blabel_\w+")
_XID_METRIC = "DCGM_FI_DEV_XID_ERRORS"


@rule(
    OldMetricName="a metric has a name that its exporter does not use",
    UsedByFree="used memory is divided by free memory instead of by all memory",
    XidIsAGauge="the metric of Xid errors is treated as a counter or as labelled by the Xid",
    RateOfGauge="rate() is applied to a gauge",
    TrueWithoutNvlink="an alert for NVLink without traffic fires for GPUs that do not use NVLink",
    LabelNotExported="a label of kube_pod_labels is used, which kube-state-metrics does not export by default",
)
def prometheus_rules(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for row, group in enumerate(maps(dig(obj, "spec", "groups"))):
        for at, each in enumerate(maps(group.get("rules"))):
            expression = each.get("expr")
            if isinstance(expression, str):
                yield from _expression(f"spec.groups[{row}].rules[{at}].expr", expression)


def _expression(here: str, text: str) -> Iterator[Advice]:
    old = list(dict.fromkeys(name for name in _NAME.findall(text) if name in METRICS))
    if old:
        names = ", ".join(f"{METRICS[name]} for {name}" for name in old)
        note = "; the ratio is from 0 to 1, not a percentage" if RATIOS & set(old) else ""
        what = f"current exporters have no {' and no '.join(old)}: the expression has no result"
        yield Advice("OldMetricName", here, what, f"write {names}{note}")
    yield from _used_by_free(here, text)
    yield from _xids(here, text)
    if _NO_TRAFFIC.search(text):
        what = "is also true for pods with one GPU, and for GPUs without NVLink"
        fix = "restrict it to pods with several GPUs that had traffic before"
        yield Advice("TrueWithoutNvlink", here, what, fix)
    if _POD_LABELS.search(text):
        what = "kube-state-metrics exports no labels of pods unless its flags name them"
        fix = "start it with --metric-labels-allowlist=pods=[...]"
        yield Advice("LabelNotExported", here, what, fix)
    for function, name in _RATE.findall(text):
        if METRICS.get(name, name) in GAUGES:
            what = f"{function}() is for counters, and {name} goes up and down"
            yield Advice("RateOfGauge", here, what, f"write deriv({name}[...]) or delta({name}[...])")


def _used_by_free(here: str, text: str) -> Iterator[Advice]:
    found = _USED_BY_FREE.search(text)
    if found is None:
        return
    used, free = found.groups()
    threshold = _THRESHOLD.match(text, found.end())
    what = f"{used} / {free} is not the share of used memory"
    if threshold:
        limit = float(threshold[1])
        what += f": it exceeds {threshold[1]} when {limit / (1 + limit):.1%} of the memory is used"
    yield Advice("UsedByFree", here, what, f"write {used} / ({used} + {free})")


def _xids(here: str, text: str) -> Iterator[Advice]:
    labelled = _XID.search(text)
    if labelled:
        what = f"{_XID_METRIC} has no label xid: its value is the last Xid"
        fix = f"write {_XID_METRIC} == {labelled[1]}, or use DCGM_EXP_XID_ERRORS_COUNT where it is exported"
        yield Advice("XidIsAGauge", here, what, fix)
    if any(name == _XID_METRIC for _, name in _RATE.findall(text)):
        what = f"{_XID_METRIC} is a gauge with the last Xid: its rate misses an Xid that is repeated"
        yield Advice("XidIsAGauge", here, what, f"write {_XID_METRIC} > 0, or use DCGM_EXP_XID_ERRORS_COUNT")
