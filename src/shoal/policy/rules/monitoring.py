"""Checks the expressions of PrometheusRules for mistakes about the metrics of GPUs.

An expression in which a name is not next to the function or operator has no advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, maps
from shoal.policy.gpu_metrics import GAUGES, METRICS, RATIOS, SERVER_METRICS
from shoal.policy.kinds import PROMETHEUS_RULE
from shoal.policy.promql_tokens import Word, bracket_fault, promql_words, texts
from shoal.units.numbers import whole_of

_XID_METRIC = "DCGM_FI_DEV_XID_ERRORS"
_USED, _FREE, _TRAFFIC = "fb_used", "fb_free", "nvlink_bandwidth_total"
_NAMES = {**METRICS, **SERVER_METRICS}
_RATES = ("rate", "irate", "increase")
_DURATION = re.compile(r"0|(?:\d+y)?(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?", re.ASCII)
_LONGEST_NUMBER, _LONGEST_WINDOW = 12, 12


@check(
    Rule(
        "SHL-601",
        "OldMetricName",
        "error",
        fault="a metric has a name that its exporter does not use",
        effect="the expression selects nothing, so the alert never fires",
        fix="write the name that the exporter uses",
        bad="""\
- alert: GpuIdle
  expr: avg_over_time(dcgm_gpu_utilization[1h]) < 5
""",
        changes=(Change("dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"),),
    ),
    Rule(
        "SHL-602",
        "UsedByFree",
        "error",
        fault="used memory is divided by free memory instead of by all memory",
        effect="the alert fires at half of the memory",
        fix="divide by the sum of used and free memory",
        bad="""\
- alert: GpuMemory
  expr: DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_FREE > 0.95
""",
        changes=(Change("/ DCGM_FI_DEV_FB_FREE", "/ (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)"),),
    ),
    Rule(
        "SHL-603",
        "XidIsAGauge",
        "error",
        fault="the metric of Xid errors is treated as a counter or as labelled by the Xid",
        effect="the alert misses errors or never fires",
        fix="compare the value with the Xid",
        bad="""\
- alert: Xid
  expr: rate(DCGM_FI_DEV_XID_ERRORS[5m]) > 0
""",
        changes=(Change("rate(DCGM_FI_DEV_XID_ERRORS[5m])", "DCGM_FI_DEV_XID_ERRORS"),),
    ),
    Rule(
        "SHL-604",
        "RateOfGauge",
        "warning",
        fault="rate() is applied to a gauge",
        effect="the figure has no meaning",
        fix="use deriv() or delta()",
        bad="""\
- alert: Leak
  expr: rate(DCGM_FI_DEV_FB_USED[1h]) > 0
""",
        changes=(Change("rate(", "deriv("),),
    ),
    Rule(
        "SHL-605",
        "TrueWithoutNvlink",
        "warning",
        fault="an alert for NVLink without traffic fires for GPUs that do not use NVLink",
        effect="the alert fires on machines that have no NVLink",
        fix="restrict the expression to GPUs that had traffic before",
        bad="""\
- alert: Stalled
  expr: rate(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL[5m]) == 0
""",
        changes=(
            Change("[5m]) == 0", "[5m]) == 0 and max_over_time(rate(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL[5m])[1h:]) > 0"),
        ),
    ),
    Rule(
        "SHL-607",
        "InvalidExpression",
        "error",
        fault="Prometheus cannot read an expression or a duration, and refuses the whole group",
        effect="Prometheus refuses the file, so none of its rules are evaluated",
        fix="close the brackets, and write durations with s, m, h or d",
        bad="""\
- alert: Requests
  expr: sum(rate(http_requests_total[5m]) > 0
""",
        changes=(Change("[5m]) >", "[5m])) >"),),
    ),
    Rule(
        "SHL-606",
        "LabelNotExported",
        "error",
        fault="a label of kube_pod_labels is used, which kube-state-metrics does not export by default",
        effect="the join selects nothing",
        fix="start kube-state-metrics with --metric-labels-allowlist=pods=[...]",
        bad="""\
- alert: Waiting
  expr: kube_pod_labels{label_team="a"} == 1
""",
        changes=(Change("kube_pod_labels{label_team", "kube_pod_labels{namespace"),),
    ),
    kinds=(PROMETHEUS_RULE,),
)
def prometheus_rules(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for row, group in enumerate(maps(dig(obj, "spec", "groups"))):
        for at, each in enumerate(maps(group.get("rules"))):
            expression = each.get("expr")
            yield from _durations(f"spec.groups[{row}].rules[{at}]", each)
            if isinstance(expression, str):
                if fault := bracket_fault(expression):
                    yield Advice("InvalidExpression", f"spec.groups[{row}].rules[{at}].expr", *fault)
                yield from _expression(f"spec.groups[{row}].rules[{at}].expr", expression)


def _durations(here: str, rule: Obj) -> Iterator[Advice]:
    for field in ("for", "keep_firing_for"):
        value = rule.get(field)
        if isinstance(value, str) and value and not _DURATION.fullmatch(value):
            what = f'"{value}" is no duration of Prometheus'
            yield Advice("InvalidExpression", f"{here}.{field}", what, "write numbers with s, m, h or d, such as 30m")


def _expression(here: str, text: str) -> Iterator[Advice]:
    words = promql_words(text)
    yield from _old_names(here, words)
    for at, word in enumerate(words):
        following = texts(words, at + 1, 2)
        if word.text.lower().endswith(_USED) and following[:1] == ("/",) and following[-1].lower().endswith(_FREE):
            yield _used_by_free(here, words, at)
        if word.text == _XID_METRIC:
            yield from _xid_labels(here, word)
        if word.text == "kube_pod_labels" and any(label.startswith("label_") for label in word.labels):
            what = "kube-state-metrics exports no labels of pods unless its flags name them"
            yield Advice("LabelNotExported", here, what, "start it with --metric-labels-allowlist=pods=[...]")
        if word.text in _RATES and following[:1] == ("(",) and len(following) > 1:
            yield from _rates(here, words, at)


def _old_names(here: str, words: Sequence[Word]) -> Iterator[Advice]:
    old = list(dict.fromkeys(word.text for word in words if word.text in _NAMES))
    if old:
        names = ", ".join(f"{_NAMES[name]} for {name}" for name in old)
        note = "; the ratio is from 0 to 1, not a percentage" if RATIOS & set(old) else ""
        what = f"current exporters have no {' and no '.join(old)}: the expression has no result"
        yield Advice("OldMetricName", here, what, f"write {names}{note}")


def _used_by_free(here: str, words: Sequence[Word], at: int) -> Advice:
    used, free = words[at].text, words[at + 2].text
    what = f"{used} / {free} is not the share of used memory"
    after = [text for text in texts(words, at + 3, 4) if text != ")"]
    limit = _number(after[1]) if len(after) > 1 and after[0] in (">", ">=") else None
    if limit is not None:
        what += f": it exceeds {after[1]} when {limit / (1 + limit):.1%} of the memory is used"
    return Advice("UsedByFree", here, what, f"write {used} / ({used} + {free})")


def _number(text: str) -> float | None:
    """The number that the text represents, if it is a short one."""
    is_plain = text.isascii() and len(text) < _LONGEST_NUMBER and text.replace(".", "", 1).isdigit()
    return float(text) if is_plain else None


def _xid_labels(here: str, word: Word) -> Iterator[Advice]:
    if "xid" in word.labels:
        values = [value for value in word.labels if whole_of(value) is not None]
        what = f"{_XID_METRIC} has no label xid: its value is the last Xid"
        fix = f"write {_XID_METRIC} == {values[0] if values else 'the number'}"
        yield Advice("XidIsAGauge", here, what, f"{fix}, or use DCGM_EXP_XID_ERRORS_COUNT where it is exported")


def _rates(here: str, words: Sequence[Word], at: int) -> Iterator[Advice]:
    function, name = words[at].text, words[at + 2].text
    if name == _XID_METRIC:
        what = f"{_XID_METRIC} is a gauge with the last Xid: its rate misses an Xid that is repeated"
        yield Advice("XidIsAGauge", here, what, f"write {_XID_METRIC} > 0, or use DCGM_EXP_XID_ERRORS_COUNT")
    if METRICS.get(name, name) in GAUGES:
        what = f"{function}() is for counters, and {name} goes up and down"
        yield Advice("RateOfGauge", here, what, f"write deriv({name}[...]) or delta({name}[...])")
    window = texts(words, at + 3, _LONGEST_WINDOW)
    end = window.index(")") if ")" in window else len(window)
    is_silent = name.lower().endswith(_TRAFFIC) and window[end + 1 : end + 3] == ("==", "0")
    if is_silent and not _had_traffic(words):
        what = "is also true for pods with one GPU, and for GPUs without NVLink"
        yield Advice("TrueWithoutNvlink", here, what, "restrict it to pods with several GPUs that had traffic before")


def _had_traffic(words: Sequence[Word]) -> bool:
    """Whether the expression is restricted to GPUs that had traffic: `max_over_time(rate(...))`."""
    return any(
        word.text == "max_over_time" and any(text.lower().endswith(_TRAFFIC) for text in texts(words, at + 1, 4))
        for at, word in enumerate(words)
    )
