"""Alerts: which series fire them and which do not, by Prometheus' own tool; and that each names what it is about."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.alert_cases import DOES_NOT, FIRES, Series
from build.promtool import PROMTOOL
from shoal.policy.alert_rules import ALERTS, prometheus_rule, rule_groups


def checked(folder: Path, cases: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    (folder / "rules.yaml").write_bytes(msgspec.yaml.encode({"groups": rule_groups()}))
    written = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": cases}
    (folder / "tests.yaml").write_bytes(msgspec.yaml.encode(written))
    command = [PROMTOOL, "test", "rules", "tests.yaml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def case(name: str, series: Series, at: str, *, fires: bool) -> dict[str, Any]:
    found = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > bool 0 or vector(0)'
    samples = [{"labels": "{}", "value": 1 if fires else 0}]
    return {
        "name": f"{name} at {at}: {fires}",
        "interval": "30s",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [{"expr": found, "eval_time": at, "exp_samples": samples}],
    }


@pytest.mark.external("promtool")
def test_every_alert_fires_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    cases = [case(*one, fires=True) for one in FIRES] + [case(*one, fires=False) for one in DOES_NOT]
    done = checked(tmp_path, cases)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.external("promtool")
def test_a_case_that_is_wrong_would_be_noticed(tmp_path: Path) -> None:
    name, series, at = FIRES[0]
    assert checked(tmp_path, [case(name, series, at, fires=False)]).returncode == 1


@pytest.mark.external("promtool")
def test_the_texts_of_alerts_name_what_they_are_about(tmp_path: Path) -> None:
    # Without an expected alert promtool prints those that there are.
    cases = [
        {
            "interval": "30s",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": []}],
        }
        for name, series, at in FIRES
    ]
    done = checked(tmp_path, cases)
    text = done.stdout + done.stderr
    assert text.count("alertname=") >= len(FIRES)
    assert "no value" not in text
    assert "error expanding" not in text
    for words in (
        "GPU 0 of n-0 has 86 degrees, held by team/train-0.",
        "96% of the memory of GPU 0 of n-0 is used, held by team/train-0.",
        "GPU 0 of n-0 reports Xid 31",
        "shoal xid 48 says",
        "Pod team/train-0 may have stalled",
        "GPU 0 (MIG instance 1) of n-0 is used to 9 percent, held by team/train-0.",
        "GPUs that pods of namespace team hold and do not use cost 5.20 per hour, in the currency of the prices.",
        "33.33% of all GPUs are the free rest of partly used GPUs.",
        "Workloads of ClusterQueue gold wait for 4 nvidia.com/gpu; its own quota is unused.",
    ):
        assert words in text, words


def test_both_lists_have_every_alert() -> None:
    names = {one.name for one in ALERTS}
    assert {name for name, *_ in FIRES} == names
    assert {name for name, *_ in DOES_NOT} == names


def test_names_are_unique_and_every_alert_has_a_runbook() -> None:
    assert len({one.name for one in ALERTS}) == len(ALERTS)
    assert all(one.runbook and one.summary and one.description for one in ALERTS)


def test_every_metric_is_on_the_page_of_metrics() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    used = {
        word.removesuffix("_bucket")
        for one in ALERTS
        for word in re.findall(r"\b(?:DCGM_|kueue_|shoal_)\w+", one.expression)
    }
    assert len(used) > 5
    assert {word for word in used if f"`{word}`" not in page} == set()


def test_every_alert_is_on_the_page_of_alerts_with_its_expression_time_and_severity() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    for one in ALERTS:
        assert f"| `{one.name}` | {one.severity} | {one.lasting} |" in page


def test_the_object_of_the_prometheus_operator_has_the_labels_that_select_it() -> None:
    found = prometheus_rule("a", "b", {"release": "prom"})
    assert found["metadata"] == {"name": "a", "namespace": "b", "labels": {"release": "prom"}}
    assert found["spec"] == {"groups": rule_groups()}
    assert "labels" not in prometheus_rule("a", "b", {})["metadata"]
