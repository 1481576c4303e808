"""PromQL: what is refused, values by hand, and random series compared with promtool."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest

from build.collected_manifests import COLLECTED
from build.promtool import PROMTOOL
from build.promtool_series import labels_of, values_of
from shoal.policy.alert_rules import rule_groups
from shoal.prometheus.promql.evaluation import Evaluation, check_supported
from shoal.prometheus.promql.parser import parsed, type_of
from shoal.prometheus.promql.series import LabelledValue, SeriesStore
from shoal.prometheus.promql.tokens import PromqlError, milliseconds
from shoal.prometheus.promql.trees import lookback_ms, selectors

STEP_MS = 37_000
"""Between samples: none is at the begin of a range, which belongs to the range before Prometheus 3 only."""
Values = dict[tuple[tuple[str, str], ...], float]
EXPRESSIONS = (
    "a",
    "-a",
    "a offset 2m",
    'a{g="1"}',
    'a{g=~"[01]",h!="x"}',
    "a + b",
    "a / on (g) b",
    "a * ignoring (h) group_left () sum by (g) (b)",
    "a > 5",
    "a > bool 5",
    "5 < a",
    "a == b",
    "a and on (g) (b > 5)",
    "a unless b",
    "a or b",
    "sum(a)",
    "sum by (h) (a)",
    "avg without (g) (a)",
    "max(a) - min(a)",
    "count by (g) (a > 3)",
    "group by (g) (b)",
    "avg_over_time(a[4m])",
    "max_over_time(a[4m])",
    "sum_over_time(b[3m])",
    "count_over_time(b[3m])",
    "last_over_time(b[3m])",
    "stddev_over_time(a[4m])",
    "changes(b[5m])",
    "resets(b[5m])",
    "rate(c[5m])",
    "increase(c[3m])",
    "irate(c[5m])",
    "delta(a[5m])",
    "deriv(a[5m])",
    "max_over_time(rate(c[2m])[4m:1m])",
    "avg_over_time(a[5m:])",
    "histogram_quantile(0.9, sum by (le) (rate(d_bucket[5m])))",
    "histogram_quantile(0.5, d_bucket)",
    "abs(a - 5)",
    "ceil(a / 3)",
    "floor(a / 3)",
    "vector(3) + 2 ^ 3 ^ 0",
    "absent(missing)",
    'absent(missing{g="1"})',
    "a % 3",
    "scalar(sum(b)) * a",
    "2 + 3 * 4 - 10 / 4",
)


def _series(seed: int) -> dict[str, str]:
    draw = Random(seed)
    found: dict[str, str] = {}
    for name in ("a", "b", "c"):
        for group in range(3):
            values, total = [], 0.0
            for _ in range(24):
                total = 0.0 if draw.random() < 0.1 else total + draw.randint(0, 9)
                value = f"{total if name == 'c' else draw.randint(0, 12)}"
                values.append("_" if draw.random() < 0.15 else value)
            found[f'{name}{{g="{group}",h="{"x" if group else "y"}"}}'] = " ".join(values)
    for bound in ("1", "5", "+Inf"):
        step = {"1": 1, "5": 3, "+Inf": 4}[bound]
        found[f'd_bucket{{le="{bound}"}}'] = f"0+{step}x23"
    return found


def _evaluated(series: Mapping[str, str], expression: str, at_ms: int) -> Values:
    tree = parsed(expression)
    check_supported(tree)
    store = SeriesStore(dict.fromkeys((one.name for one in selectors(tree)), lookback_ms(tree)))
    for key, values in series.items():
        name, labels = labels_of(key)
        for at, value in enumerate(values_of(values)):
            if value is not None:
                store.add(at * STEP_MS, LabelledValue(name, store.label_sets.of(labels), value))
    found = Evaluation(store, 30_000).vector(tree, at_ms)
    return {((("__name__", one.name), *one.labels.pairs) if one.name else one.labels.pairs): one.value for one in found}


def _of_prometheus(folder: Path, series: Mapping[str, str], expressions: Sequence[str]) -> list[Values]:
    """What promtool says that it got, where an answer is expected that cannot be."""
    assert PROMTOOL is not None
    wrong = [{"labels": "impossible", "value": 1}]
    tests = [{"expr": one, "eval_time": "607s", "exp_samples": wrong} for one in expressions]
    given = [{"series": key, "values": values} for key, values in series.items()]
    case = {"interval": "37s", "input_series": given, "promql_expr_test": tests}
    (folder / "t.yaml").write_bytes(msgspec.yaml.encode({"evaluation_interval": "30s", "tests": [case]}))
    command = [PROMTOOL, "test", "rules", "t.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    found = []
    for part in (done.stdout + done.stderr).split("    expr: ")[1:]:
        values: Values = {}
        for labels, value in re.findall(r"\{([^}]*)\} (\S+?)(?:,|\n|$)", part[part.index("got:") :]):
            pairs = tuple(re.findall(r'(\w+)="([^"]*)"', labels))
            values[pairs] = float(value.replace("Inf", "inf"))
        found.append(values)
    return found


@pytest.mark.external("promtool")
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_prometheus(tmp_path: Path, seed: int) -> None:
    series = _series(seed)
    found = _of_prometheus(tmp_path, series, EXPRESSIONS)
    assert len(found) == len(EXPRESSIONS)
    for expression, expected in zip(EXPRESSIONS, found, strict=True):
        values = _evaluated(series, expression, 607_000)
        assert values == pytest.approx(expected, rel=1e-9, nan_ok=True), expression


def test_values_by_hand() -> None:
    series = {'a{g="1"}': "1+1x20", 'a{g="2"}': "10x20", "c": "0+3x5 0+3x20"}
    assert _evaluated(series, "sum(a)", 740_000) == {(): 31.0}
    assert _evaluated(series, "avg_over_time(a[1m])", 740_000) == {(("g", "1"),): 20.5, (("g", "2"),): 10.0}
    assert _evaluated(series, 'a{g="1"} > 20', 740_000) == {(("__name__", "a"), ("g", "1")): 21.0}
    # It falls from 15 to 0 after six samples: nothing of what was counted before is lost.
    assert _evaluated(series, "increase(c[5m])", 333_000)[()] > 20
    assert _evaluated(series, "c / 0", 740_000)[()] == math.inf


def test_a_series_that_is_missing_from_a_scrape_has_no_value() -> None:
    store = SeriesStore({"a": 0})
    value = LabelledValue("a", store.label_sets.of({"g": "1"}), 1.0)
    evaluation = Evaluation(store)
    store.scrape("one", 0, [value])
    assert [one.value for one in evaluation.vector(parsed("a"), 10_000)] == [1.0]
    store.scrape("one", 20_000, [])
    assert evaluation.vector(parsed("a"), 20_000) == []
    store.scrape("one", 40_000, [value])
    store.keep_sources(["other"], 60_000)
    assert evaluation.vector(parsed("a"), 60_000) == []


def test_a_source_that_is_silent_is_current_for_five_minutes() -> None:
    store = SeriesStore({"a": 0})
    store.scrape("one", 0, [LabelledValue("a", store.label_sets.empty, 1.0)])
    evaluation = Evaluation(store)
    assert evaluation.vector(parsed("a"), 299_999)
    assert not evaluation.vector(parsed("a"), 300_000)


def test_series_that_match_several_times_are_an_error() -> None:
    with pytest.raises(PromqlError, match="several series match"):
        _evaluated({'a{g="1",h="1"}': "1x9", 'a{g="1",h="2"}': "1x9", 'b{g="1"}': "1x9"}, "a * on (g) b", 60_000)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("sum(", "unexpected end"),
        ("a b", "end expected"),
        ("rate(a)", "argument 1 of rate is no range"),
        ("a[5m]offset", "a duration is expected"),
        ("(a + b)[5m]", "write \\[1h:\\]"),
        ("1 > 2", "need bool"),
        ("a + bool b", "bool belongs to comparisons"),
        ("sum by (a) b", "\\( expected"),
        ("{}", "needs a name"),
        ('{g=~".*"}', "needs a name"),
        ('a{g="1"', "} expected"),
        ('a{g~"1"}', "unexpected '~'"),
        ('a{g=~"("}', "no regular expression"),
        ("nofunction(a)", "there is no function nofunction"),
        ("a and 1", "between instant vectors"),
        ("a @ 5", "@ is not supported"),
        ("topk(a)", "topk has 2 arguments"),
        ('a{g="1}', "does not end"),
        ("(" * 200 + "a" + ")" * 200, "nested too deeply"),
        ("a and on (g) group_left () b", "and has no group_left"),
    ],
)
def test_an_expression_that_prometheus_would_refuse_is_refused(expression: str, message: str) -> None:
    with pytest.raises(PromqlError, match=message):
        parsed(expression)


@pytest.mark.parametrize("expression", ["topk(3, a)", "predict_linear(a[1h], 60)", '{g="1"}'])
def test_what_cannot_be_evaluated_is_known_before(expression: str) -> None:
    with pytest.raises(PromqlError, match="cannot be evaluated without Prometheus"):
        check_supported(parsed(expression))


@pytest.mark.parametrize(
    "expression",
    ["A:b:c", "sum by(a)(rate(b[5m])) / 2", "a[1h:1m] offset 5m", 'label_replace(a, "x", "$1", "y", "(.*)")'],
)
def test_further_forms_are_read(expression: str) -> None:
    assert type_of(parsed(expression)) in ("vector", "range")


def test_all_expressions_of_the_alerts_can_be_evaluated() -> None:
    for group in rule_groups():
        for rule in group["rules"]:
            check_supported(parsed(rule["expr"]))


@pytest.mark.skipif(not COLLECTED.is_dir(), reason="the collected expressions are not beside this clone")
def test_all_collected_expressions_are_read() -> None:
    files = sorted((COLLECTED / "promql").glob("*.promql"))
    assert len(files) == 29
    for file in files:
        parsed(file.read_text(encoding="utf-8"))


def test_durations_are_read() -> None:
    assert milliseconds("1h30m") == 5_400_000
    assert milliseconds("250ms") == 250
