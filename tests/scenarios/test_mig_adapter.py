"""The judge of the cases about MIG: the expectation is read after the decision, and a wrong one is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .__main__ import results_of
from .mig.results import results_of_case

OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios" / "mig"
GPU = {"index": 0, "device": "0x20B010DE", "resetNeededForModeChange": True}
FILE = "version: v1\nmig-configs:\n  one:\n  - devices: all\n    mig-enabled: true\n    mig-devices: {'3g.20gb': 2}\n"


def status(**fields: Any) -> str:
    (result,) = results_of_case({"id": "a", **fields})
    assert bool(result.diff) == (result.status == "fail")
    return result.status


@pytest.mark.skipif(not OPEN_CASES.exists(), reason="the cases are not on this machine")
def test_all_open_cases_pass() -> None:
    results = results_of([OPEN_CASES])
    assert len(results) == 21
    assert [one.id for one in results if one.status != "pass"] == []


def test_the_order_of_operations_is_the_second_level() -> None:
    operations = [
        *("hook apply-start", "hook pre-apply-mode", "mode 0 enabled", "reset all"),
        *("hook pre-apply-config", "instances 0 3g.20gb,3g.20gb", "hook apply-exit"),
    ]
    after = [{"index": 0, "migEnabled": True, "instances": {"3g.20gb": 2}}]
    case: dict[str, Any] = {"stage": "apply", "document": FILE, "gpus": [GPU]}
    assert status(**case, expect={"after": after, "operations": operations}) == "pass"
    (result,) = results_of_case({"id": "a", **case, "expect": {"after": after, "operations": operations[1:]}})
    assert (result.status, result.level) == ("fail", 1)
    (result,) = results_of_case({"id": "a", **case, "expect": {"after": [], "operations": operations}})
    assert (result.status, result.level) == ("fail", 0)


def test_an_expected_refusal_has_to_be_one() -> None:
    refused = {"refused": {"class": "any", "mentions": ["nowhere"]}}
    (result,) = results_of_case({"id": "a", "stage": "parse", "document": "version: v2", "expect": refused})
    assert result.status == "pass"
    assert result.notes == ["the message has no 'nowhere': unknown version: v2"]
    assert status(stage="parse", document=FILE, expect=refused) == "fail"
    assert status(stage="parse", document="version: v2", expect={"accepted": {"configs": []}}) == "fail"


def test_entries_of_an_export_are_compared_in_any_order() -> None:
    gpus = [{"index": 0, "model": "A", "migEnabled": False}, {"index": 1, "model": "B", "migEnabled": True}]
    entries = [
        {"devices": "all", "migEnabled": True, "deviceFilter": "B"},
        {"devices": "all", "migEnabled": False, "deviceFilter": ["A"]},
    ]
    assert status(stage="export", gpus=gpus, expect={"entries": entries}) == "pass"
    assert status(stage="export", gpus=gpus, expect={"entries": entries[:1]}) == "fail"


def test_a_case_of_another_form_is_a_failure() -> None:
    assert status(stage="possible", gpu="A100", expect={"possible": True}) == "fail"
    assert status(stage="order", instances={"1g.5gb": 1}) == "fail"
