"""The judge of the cases about ScaledObjects: a wrong expectation is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .__main__ import results_of
from .keda.results import results_of_case

OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios" / "keda"
OBJECT = {
    "metadata": {"name": "a"},
    "spec": {
        "scaleTargetRef": {"name": "w"},
        "minReplicaCount": 1,
        "pollingInterval": 5,
        "triggers": [{"type": "cron"}],
    },
}


def status(expect: dict[str, Any], **case: Any) -> str:
    (result,) = results_of_case({"id": "a", **case, "expect": expect})
    return result.status


@pytest.mark.skipif(not OPEN_CASES.exists(), reason="the cases are not on this machine")
def test_all_open_cases_pass() -> None:
    results = results_of([OPEN_CASES])
    assert len(results) == 39
    assert [one.id for one in results if one.status != "pass"] == []


def test_parts_of_messages_and_warnings_are_looked_for() -> None:
    webhook = {"level": "webhook", "object": OBJECT}
    assert status({"accepted": True, "warningsContain": ["PollingInterval"]}, **webhook) == "pass"
    assert status({"accepted": True, "warningsAbsent": ["PollingInterval"]}, **webhook) == "fail"
    other = {**OBJECT, "metadata": {"name": "b"}, "kind": "ScaledObject"}
    assert status({"accepted": False, "messageContains": "'b'"}, **webhook, existing=[other]) == "pass"
    assert status({"accepted": False, "messageContains": "'c'"}, **webhook, existing=[other]) == "fail"


def test_a_condition_that_is_missing_fails() -> None:
    run = {"level": "executor", "active": True, "currentReplicas": 0}
    active = {"type": "Active", "status": "True", "reason": "ScalerActive"}
    assert status({"replicas": 1, "conditions": [active]}, **run) == "pass"
    assert status({"replicas": 1, "conditions": []}, **run) == "fail"


def test_a_case_without_an_expectation_fails() -> None:
    assert status({}, level="pause-annotations") == "fail"
