"""The judge of the cases about driver upgrades: it looks at the expectation last, and finds a wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .__main__ import results_of
from .upgrade.results import results_of_case

OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios" / "upgrade"
DRIVER = {"upToDate": False, "orphaned": False, "phase": "Running", "containers": [{"ready": True, "restarts": 0}]}
NODES = [
    {"name": "a", "state": "upgrade-required", "driverPod": DRIVER},
    {"name": "b", "state": "upgrade-required", "driverPod": DRIVER},
    {"name": "c", "state": "cordon-required", "driverPod": DRIVER, "annotations": {"other": "1"}},
]
CASE: dict[str, Any] = {"id": "a", "policy": {"autoUpgrade": True, "maxParallelUpgrades": 2}, "nodes": NODES}
EXPECTED: dict[str, Any] = {
    "nodes": {
        "a": {"state": "cordon-required", "unschedulable": False, "annotations": {}},
        "b": {"state": "upgrade-required", "unschedulable": False, "annotations": {}},
        "c": {"state": "wait-for-jobs-required", "unschedulable": True, "annotations": {}},
    },
    "stateCounts": {"cordon-required": 1, "upgrade-required": 1, "wait-for-jobs-required": 1},
    "cordoned": ["c"],
    "uncordoned": [],
    "drainStarted": [],
    "driverPodsRestarted": [],
    "podsEvicted": [],
    "upgradeSlots": 1,
}


def judged(expect: dict[str, Any], **fields: Any) -> tuple[str, int]:
    (result,) = results_of_case({**CASE, **fields, "expect": expect})
    assert bool(result.diff) == (result.status == "fail")
    return result.status, result.level


@pytest.mark.skipif(not OPEN_CASES.exists(), reason="the cases are not on this machine")
def test_all_open_cases_pass_on_the_second_level() -> None:
    results = results_of([OPEN_CASES])
    assert len(results) == 13
    assert [one.id for one in results if (one.status, one.level) != ("pass", 2)] == []


def test_a_correct_expectation_passes() -> None:
    assert judged(EXPECTED) == ("pass", 2)


def test_another_order_of_a_set_passes() -> None:
    two = [{**NODES[2], "name": "d"}, *NODES[2:]]
    assert judged({"cordoned": ["c", "d"]}, nodes=two) == ("pass", 2)


@pytest.mark.parametrize(
    ("change", "level"),
    [
        ({"stateCounts": {"cordon-required": 2, "wait-for-jobs-required": 1}}, 0),
        ({"nodes": {"c": {"state": "cordon-required"}}}, 0),
        ({"nodes": {"missing": {"state": "upgrade-done"}}}, 0),
        ({"nodes": {"a": {"state": "upgrade-required"}}}, 1),
        ({"nodes": {"b": {"state": "cordon-required"}}}, 1),
        ({"nodes": {"a": {"state": "cordon-required", "unschedulable": True}}}, 1),
        ({"nodes": {"a": {"state": "cordon-required", "annotations": {"nvidia.com/gpu-driver-upgrade-x": "1"}}}}, 1),
        ({"cordoned": ["a"]}, 1),
        ({"drainStarted": ["a"]}, 1),
        ({"podsEvicted": ["c"]}, 1),
        ({"driverPodsRestarted": ["c"]}, 1),
        ({"uncordoned": ["c"]}, 1),
        ({"upgradeSlots": 2}, 1),
        ({"refused": {"class": "any"}}, 0),
    ],
)
def test_a_wrong_expectation_fails(change: dict[str, Any], level: int) -> None:
    assert judged({**EXPECTED, **change}) == ("fail", level)


def test_a_case_without_an_expectation_fails() -> None:
    assert judged({}) == ("fail", 0)


def test_an_expected_refusal_has_to_be_one() -> None:
    wrong = {"autoUpgrade": True, "maxUnavailable": "many"}
    assert judged({"refused": {"class": "any"}}, policy=wrong) == ("pass", 2)
    assert judged(EXPECTED, policy=wrong) == ("fail", 0)


def test_without_a_policy_nothing_changes_and_no_slots_are_counted() -> None:
    counts = {"upgrade-required": 2, "cordon-required": 1}
    assert judged({"stateCounts": counts, "cordoned": []}, policy=None) == ("pass", 2)
    assert judged({"stateCounts": counts, "upgradeSlots": 0}, policy=None) == ("fail", 1)


def test_a_case_of_another_form_is_a_failure() -> None:
    assert judged(EXPECTED, nodes="a") == ("fail", 0)
