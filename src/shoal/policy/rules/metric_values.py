"""Checks expressions of PrometheusRules whose metric exists and means something else: ratios, histograms, metrics that
exporters do not collect by default, and labels of alert texts that no sample has.

An expression that might be meant as it is written has no advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.gpu_metrics import EXPORTED_LABELS, HISTOGRAMS, NOT_COLLECTED
from shoal.policy.kinds import PROMETHEUS_RULE
from shoal.policy.promql_tokens import Word, promql_words, texts
from shoal.units.near_texts import is_typo

_RATIO = re.compile(r"DCGM_FI_PROF_[A-Z0-9_]+_(?:ACTIVE|OCCUPANCY)")
_COMPARISONS = frozenset({">", ">=", "<", "<=", "==", "!="})
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_LABEL = re.compile(r"\{\{-?\s*(?:with\s+|if\s+)?\$labels\.([A-Za-z_][A-Za-z0-9_]*)")
_MATCHING = frozenset({"on", "ignoring", "group_left", "group_right", "without", "label_replace", "label_join", "or"})
_BY, _GPU_METRIC, _OF_HISTOGRAM = "by", "DCGM_", "histogram_"
_CLAUSES = frozenset({"by", "without"})
_VECTOR_MATCHING = frozenset({"on", "ignoring", "group_left", "group_right"})
_ARITHMETIC = frozenset({"*", "/", "+", "%", "^"})
_NO_RATIOS = frozenset({"sum", "count", "count_values", "group", "changes", "resets"})
"""Functions whose result for a ratio may be more than 1."""
_OVER_TIME = "_over_time"
_RATIOS_OVER_TIME = frozenset(f"{name}{_OVER_TIME}" for name in ("avg", "min", "max", "quantile", "last"))
_LONGEST_WINDOW = 12
_MISTAKEN_LABELS = frozenset({"gpu_index", "gpu_id", "gpu_uuid", "xid"})
_LONG_LABEL = 8
_USUAL_LABELS = ("gpu", "UUID", "modelName", "Hostname", "namespace", "pod", "container")


@check(
    Rule(
        "SHL-608",
        "RatioAsPercentage",
        "error",
        fault="a ratio from 0 to 1 is compared with a percentage",
        effect="the alert never fires, or always",
        fix="multiply the metric by 100, or write the limit as a ratio",
        bad="""\
- alert: Bandwidth
  expr: avg_over_time(DCGM_FI_PROF_DRAM_ACTIVE[5m]) > 70
""",
        changes=(Change("> 70", "> 0.7"),),
    ),
    Rule(
        "SHL-609",
        "HistogramAsValue",
        "error",
        fault="a histogram is read as if it were a value",
        effect="the expression selects nothing: only series with _bucket, _sum and _count exist",
        fix="use histogram_quantile() with the rate of _bucket, or divide the rates of _sum and _count",
        links=("https://kueue.sigs.k8s.io/docs/reference/metrics/",),
        bad="""\
- alert: LongWait
  expr: kueue_admission_wait_time_seconds > 600
""",
        changes=(
            Change(
                "kueue_admission_wait_time_seconds > 600",
                "histogram_quantile(0.95, sum by (le) (rate(kueue_admission_wait_time_seconds_bucket[1h]))) > 600",
            ),
        ),
    ),
    Rule(
        "SHL-610",
        "NotCollected",
        "warning",
        fault="the exporter does not collect a metric unless its list of counters names it",
        effect="the expression selects nothing",
        fix="write the metric that is collected, or add this one to the list of counters",
        bad="""\
- alert: Transfers
  expr: DCGM_FI_DEV_PCIE_TX_THROUGHPUT > 1e9
""",
        changes=(Change("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", "DCGM_FI_PROF_PCIE_TX_BYTES"),),
    ),
    Rule(
        "SHL-611",
        "NegativeIdleShare",
        "error",
        fault="the difference of free and used memory is divided by the free memory",
        effect="the share is negative as soon as more than half of the memory is used",
        fix="divide the free memory by the sum of used and free memory",
        bad="""\
- record: idle_share
  expr: (DCGM_FI_DEV_FB_FREE - DCGM_FI_DEV_FB_USED) / DCGM_FI_DEV_FB_FREE
""",
        changes=(
            Change(
                "(DCGM_FI_DEV_FB_FREE - DCGM_FI_DEV_FB_USED) / DCGM_FI_DEV_FB_FREE",
                "DCGM_FI_DEV_FB_FREE / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
            ),
        ),
    ),
    Rule(
        "SHL-612",
        "LabelNotInAlert",
        "warning",
        fault="the text of an alert names a label that its samples do not have",
        effect="the place in the text stays empty",
        fix="name a label of the exporter, or one by which the expression aggregates",
        bad="""\
- alert: Hot
  expr: DCGM_FI_DEV_GPU_TEMP > 85
  annotations: {description: "GPU {{ $labels.gpu_index }} is hot"}
""",
        changes=(Change("gpu_index", "gpu"),),
    ),
    kinds=(PROMETHEUS_RULE,),
)
def metric_values(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for row, group in enumerate(maps(dig(obj, "spec", "groups"))):
        for at, each in enumerate(maps(group.get("rules"))):
            expression, here = each.get("expr"), f"spec.groups[{row}].rules[{at}]"
            if isinstance(expression, str):
                words = promql_words(expression)
                yield from _expression(f"{here}.expr", words)
                yield from _labels(here, each, words)


def _expression(here: str, words: Sequence[Word]) -> Iterator[Advice]:
    names = dict.fromkeys(word.text for word in words)
    has_function = any(name.startswith(_OF_HISTOGRAM) for name in names)
    for name in names:
        if name in HISTOGRAMS and not has_function:
            what = f"{name} is a histogram: only {name}_bucket, {name}_sum and {name}_count exist"
            fix = f"write histogram_quantile(0.95, sum by (le) (rate({name}_bucket[1h])))"
            yield Advice("HistogramAsValue", here, what, fix)
        if name in NOT_COLLECTED:
            what = f"the list of counters of dcgm-exporter does not have {name}: the expression has no result"
            yield Advice("NotCollected", here, what, f"write {NOT_COLLECTED[name]}, or add {name} to the list")
    yield from _ratios(here, words)
    for at, word in enumerate(words):
        if word.text.lower().endswith("fb_free"):
            yield from _idle_share(here, words, at)


class _Operand(NamedTuple):
    """What a bracket encloses, with the function before it."""

    function: str
    is_part: bool
    """Whether it is the second operand of a calculation, such as `100 * X`."""
    is_clause: bool
    """Whether the bracket has the labels of an aggregation, whose operand follows."""

    @property
    def is_ratio(self) -> bool:
        """Whether the result for a ratio is a ratio."""
        is_other_window = self.function.endswith(_OVER_TIME) and self.function not in _RATIOS_OVER_TIME
        return not self.is_part and not is_other_window and self.function not in _NO_RATIOS


def _ratios(here: str, words: Sequence[Word]) -> Iterator[Advice]:
    opened: list[_Operand] = []
    closed = _Operand("", False, False)
    for at, word in enumerate(words):
        if word.text == "(":
            opened.append(_opened(words, at, closed))
        elif word.text == ")" and opened:
            closed = opened.pop()
        elif _RATIO.fullmatch(word.text) and not _is_part(words, at, closed):
            limit, brackets = _compared_with(words, at + 1)
            enclosing = opened[-brackets:] if brackets else []
            if limit and float(limit) > 1 and all(each.is_ratio for each in enclosing):
                what = f"{word.text} is a ratio from 0 to 1, and {limit} is more than 1"
                yield Advice("RatioAsPercentage", here, what, f"write 100 * {word.text}, or {float(limit) / 100:g}")


def _opened(words: Sequence[Word], at: int, closed: _Operand) -> _Operand:
    """At a bracket. `closed`: the one that was closed last."""
    before = words[at - 1].text if at else ""
    if before == ")" and closed.is_clause:
        return closed._replace(is_clause=False)
    is_clause = before in _CLAUSES
    start = max(at - (2 if is_clause else before.isidentifier()), 0)
    return _Operand(words[start].text, _is_part(words, start, closed), is_clause)


def _is_part(words: Sequence[Word], start: int, closed: _Operand) -> bool:
    before = words[start - 1].text if start else ""
    return before in _ARITHMETIC or (before == ")" and closed.function in _VECTOR_MATCHING)


def _compared_with(words: Sequence[Word], start: int) -> tuple[str, int]:
    """The number with which an operand is compared directly, behind its window and brackets, and how many brackets are
    closed before."""
    at, depth, brackets = start, 0, 0
    while at < len(words) and at < start + _LONGEST_WINDOW:
        text = words[at].text
        depth += (text == "[") - (text == "]")
        brackets += text == ")" and not depth
        if not depth and text not in ("]", ")"):
            break
        at += 1
    operator, number, following = (*texts(words, at, 3), "", "", "")[:3]
    if operator not in _COMPARISONS or not _NUMBER.fullmatch(number) or following in ("/", "*", "%", "e"):
        return "", 0
    return number, brackets


def _idle_share(here: str, words: Sequence[Word], at: int) -> Iterator[Advice]:
    """`(free - used) / free`."""
    after = [text.lower() for text in texts(words, at + 1, 5)]
    if len(after) == 5 and after[0] == "-" and after[1].endswith("fb_used") and after[2:4] == [")", "/"]:
        free, used = words[at].text, words[at + 2].text
        if after[4] == free.lower():
            what = f"({free} - {used}) / {free} is negative when more than half of the memory is used"
            yield Advice("NegativeIdleShare", here, what, f"write {free} / ({used} + {free})")


def _labels(here: str, rule: Obj, words: Sequence[Word]) -> Iterator[Advice]:
    known = _known_labels(words)
    if known is None:
        return
    for field in ("annotations", "labels"):
        for key, text in string_keys(rule.get(field)).items():
            named = _LABEL.findall(text) if isinstance(text, str) else []
            absent = [name for name in named if name not in known and (known is not EXPORTED_LABELS or _is_near(name))]
            if absent:
                what = (
                    f"the samples have no label {' and no label '.join(dict.fromkeys(absent))}: its place stays empty"
                )
                fix = f"name one of {', '.join(each for each in _USUAL_LABELS if each in known) or 'those behind by'}"
                yield Advice("LabelNotInAlert", f"{here}.{field}[{key}]", what, fix)


def _is_near(name: str) -> bool:
    """Whether a label of the exporter is meant. Relabelling may add all others."""
    if name in _MISTAKEN_LABELS:
        return True
    plain = _plain(name)
    edits = 1 if len(plain) < _LONG_LABEL else 2
    return any(plain[:1] == each[:1] and is_typo(plain, each, edits) for each in map(_plain, EXPORTED_LABELS))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _known_labels(words: Sequence[Word]) -> frozenset[str] | None:
    """None where they cannot be told: other metrics, joins, or several aggregations."""
    names = {word.text for word in words}
    metrics = [word.text for word in words if "_" in word.text and word.text.upper() == word.text]
    if names & _MATCHING or not metrics or not all(name.startswith(_GPU_METRIC) for name in metrics):
        return None
    places = [at for at, word in enumerate(words) if word.text == _BY]
    if not places:
        has_aggregation = bool(names & {"sum", "avg", "min", "max", "count", "count_values", "topk", "quantile"})
        return None if has_aggregation else EXPORTED_LABELS
    if len(places) > 1 or any("_" in name and name.lower() == name and ":" in name for name in names):
        return None
    inside: list[str] = []
    for word in words[places[0] + 1 :]:
        if word.text == ")":
            break
        inside.append(word.text)
    return frozenset(text for text in inside if text not in ("(", ","))
