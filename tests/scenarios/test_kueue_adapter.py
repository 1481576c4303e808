"""The judge of Kueue's cases: it looks at the answer last, and must be able to say no."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .__main__ import main, results_of
from .kueue.results import Options, results_of_case
from .kueue_cases import domains, expecting, granted, holding, on_topology, queue, result_of, scenario, unit, waiting

OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios" / "kueue"


def test_a_case_that_ends_as_expected_passes_on_both_levels() -> None:
    result = result_of(scenario())
    assert (result.status, result.level, result.diff, result.notes) == ("pass", 2, [], [])


@pytest.mark.parametrize("usage", ["1", "1000m", 1, "0.001k"])
def test_amounts_are_compared_however_they_are_spelled(usage: str | int) -> None:
    assert result_of(scenario(expect=expecting({"default/a": granted(usage={"cpu": usage})}))).status == "pass"


@pytest.mark.parametrize(
    ("expect", "level", "words"),
    [
        (expecting(), 0, "admitted: expected [], got ['default/a']"),
        (expecting({"default/a": {**granted(), "clusterQueue": "b"}}), 0, "expected in b, got cq"),
        (expecting({"default/a": granted()}, preempted=["default/b"]), 0, "preempted: expected ['default/b'], got []"),
        (expecting({"default/a": granted()}, evicted=["default/b"]), 0, "evicted: expected ['default/b'], got []"),
        (expecting({"default/a": granted()}, inadmissible_or_pending=["default/b"]), 0, "expected ['default/b']"),
        (expecting({"default/a": granted(2)}), 1, "count: expected 2, got 1"),
        (expecting({"default/a": granted(flavors={"cpu": "spot"})}), 1, "flavors: expected {'cpu': 'spot'}"),
        (expecting({"default/a": granted(usage={"cpu": "1001m"})}), 1, "usage: expected {'cpu': 1001}"),
        (expecting({"default/a": granted(topologyAssignment=domains(x1=1))}), 1, "topologyAssignment: expected"),
        (expecting({"default/a": granted(delayedTopologyRequest="Pending")}), 1, "delayedTopologyRequest: expected"),
        (expecting({"default/a": granted()}, requeuedActive=["default/a"]), 1, "expected active, got not waiting"),
        (expecting({"default/a": granted()}, reassigned=["default/a"]), 1, "reassigned: expected ['default/a']"),
        (expecting({"default/a": granted()}, quotaReservedOnly=["default/a"]), 1, "quotaReservedOnly: expected"),
    ],
)
def test_whatever_else_was_expected_fails(expect: dict[str, Any], level: int, words: str) -> None:
    result = result_of(scenario(expect=expect))
    assert (result.status, result.level) == ("fail", level)
    assert words in result.diff[0]


@pytest.mark.parametrize(
    ("strategy", "cpu", "state"), [("BestEffortFIFO", "9", "parkedInadmissible"), ("StrictFIFO", "9", "requeuedActive")]
)
def test_who_is_left_over_is_told_by_where_it_waits(strategy: str, cpu: str, state: str) -> None:
    said = {"clusterQueues": [queue(queueingStrategy=strategy)], "pending": [waiting("a", cpu)]}
    pending = expecting(inadmissible_or_pending=["default/a"])
    assert result_of(scenario(**said, expect=pending | {state: ["default/a"]})).diff == []
    assert result_of(scenario(**said, expect=pending | {"notInAnyQueue": ["default/a"]})).level == 1


def test_a_workload_without_a_queue_is_in_none() -> None:
    expect = expecting(inadmissible_or_pending=["default/a"], notInAnyQueue=["default/a"])
    assert result_of(scenario(localQueues=[], expect=expect)).diff == []


def test_another_reason_is_noted_and_decides_nothing() -> None:
    said: dict[str, Any] = {
        "quotaReservedFalseReason": {"default/a": "Misconfigured"},
        "admissionCyclePreemptionSkips": {"cq": 3},
    }
    expect = expecting(inadmissible_or_pending=["default/a"], **said)
    result = result_of(scenario(pending=[waiting("a", "9")], expect=expect))
    assert (result.status, len(result.notes)) == ("pass", 2)


def test_more_cycles_go_on_where_the_first_stopped_and_what_is_deleted_in_between_is_gone() -> None:
    said = {"admitted": [holding("old", "4")], "cycles": 2, "betweenCycles": {"deleteWorkloads": ["default/old"]}}
    assert result_of(scenario(**said)).diff == []
    assert result_of(scenario(**said | {"cycles": 1})).status == "fail"


def test_a_victim_keeps_what_it_holds_for_the_cycle() -> None:
    queues = [queue(preemption={"withinClusterQueue": "LowerPriority"})]
    said = {"clusterQueues": queues, "admitted": [holding("old", "4")], "pending": [waiting("a", priority=1)]}
    expect = expecting(
        preempted=["default/old"],
        preemptionReasons={"default/old": "InClusterQueue"},
        inadmissible_or_pending=["default/a"],
        requeuedActive=["default/a"],
    )
    result = result_of(scenario(**said, expect=expect))
    assert (result.diff, result.notes) == ([], [])


def test_places_are_compared_as_sets_of_domains() -> None:
    pods = waiting("a", count=4, podSet={"topologyRequest": {"preferred": "kubernetes.io/hostname"}})
    for wanted, level in ((domains(x2=2, x1=2), 2), (domains(x1=4), 1)):
        expect = expecting({"default/a": granted(4, topologyAssignment=wanted)})
        assert result_of(on_topology(pending=[pods], expect=expect)).level == level


def test_cases_that_do_not_count_are_run_only_where_asked_for() -> None:
    raw = scenario(usesNonDefaultGates=True)
    assert result_of(raw).status == "out_of_scope"
    (result,) = results_of_case(raw, Options(everything=True))
    assert result.status == "pass"


def test_a_component_is_run_as_a_cycle_too_where_asked_for() -> None:
    said = {"endToEndLikely": True, "preemptionOracle": "always-possible"}
    expect = expecting({"default/a": granted()}, assignmentMode="NoFit")
    found = results_of_case(unit(**said, expect=expect), Options(end_to_end=True))
    assert [(result.id, result.status) for result in found] == [("one", "fail"), ("one (first cycle)", "pass")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cycles": "many"}, "not in the form of a case"),
        ({"pending": [waiting("a", "lots")]}, "not in the form of a case"),
        ({"level": "unit", "preemptionOracle": "always-possible", "clusterQueues": []}, "KeyError"),
        ({"level": "unit", "expect": {"head": "default/a"}, "pending": []}, "nothing that was expected"),
    ],
)
def test_a_case_that_cannot_be_run_fails_with_the_reason(changes: dict[str, Any], words: str) -> None:
    result = result_of(scenario(**changes))
    assert (result.status, result.level) == ("fail", 0)
    assert words in result.diff[0]


def test_the_command_takes_files_of_both_families(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kueue.json"
    file.write_text(json.dumps({"group": "g", "scenarios": [scenario(), scenario(usesNonDefaultGates=True), 7]}))
    assert main([str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["totals"] == {"pass": 1, "fail": 1, "out_of_scope": 1}
    assert main([str(file), "--all"]) == 0
    assert "1 fail, 2 pass" in capsys.readouterr().out


@pytest.mark.skipif(not OPEN_CASES.is_dir(), reason="the open cases are not here")
def test_every_open_case_that_counts_passes() -> None:
    failed = {result.id: result.diff for result in results_of([OPEN_CASES]) if result.status == "fail"}
    assert failed == {}
