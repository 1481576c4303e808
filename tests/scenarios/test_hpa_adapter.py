"""The judge of the cases about HorizontalPodAutoscalers: a wrong expectation is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .__main__ import results_of
from .hpa.results import results_of_case

OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios" / "hpa"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
RUN = {
    "level": "reconcile",
    "hpa": {"spec": {"maxReplicas": 9, "metrics": [CPU]}, "status": {"currentReplicas": 1, "desiredReplicas": 1}},
    "scale": {"specReplicas": 1, "statusReplicas": 1, "selector": "app=a"},
    "pods": [
        {
            "name": "a-0",
            "labels": {"app": "a"},
            "phase": "Running",
            "ready": "True",
            "startTime": -86400,
            "readyTransition": -86400,
            "containers": [{"name": "c", "requests": {"cpu": "1"}}],
        }
    ],
    "metrics": {"resource": [{"pod": "a-0", "timestamp": 0, "containers": [{"name": "c", "usage": {"cpu": "1"}}]}]},
}


def status(expect: dict[str, Any], **changed: Any) -> str:
    (result,) = results_of_case({"id": "a", **RUN, **changed, "expect": expect})
    return f"{result.status} {result.level}"


@pytest.mark.skipif(not OPEN_CASES.exists(), reason="the cases are not on this machine")
def test_all_open_cases_pass() -> None:
    results = results_of([OPEN_CASES])
    assert len(results) == 63
    assert [one.id for one in results if one.status != "pass" or one.level != 2] == []


def test_the_size_decides_and_derived_figures_are_the_second_level() -> None:
    assert status({"desiredReplicas": 2}) == "pass 2"
    assert status({"desiredReplicas": 3}) == "fail 0"
    assert status({"desiredReplicas": 2}, derived={"metricsStatus": []}) == "pass 1"


def test_conditions_have_no_order_but_all_of_them_count() -> None:
    conditions = [
        {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"},
        {"type": "AbleToScale", "status": "True", "reason": "SucceededRescale"},
        {"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"},
    ]
    assert status({"conditions": conditions}) == "pass 2"
    assert status({"conditions": conditions[1:]}) == "fail 0"


def test_a_case_without_an_expectation_fails() -> None:
    assert status({}) == "fail 0"
