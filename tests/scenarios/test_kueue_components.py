"""Kueue's cases about one component: it is asked for nothing but its own part, and its answer is held to that."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.engine.queues.flavors.modes import Mode

from .kueue.case import case_of
from .kueue.facts import queues_of
from .kueue.flavors import oracle_of
from .kueue.workloads import waiting_of
from .kueue_cases import (
    domains,
    expecting,
    granted,
    holding,
    on_topology,
    queue,
    quotas,
    result_of,
    scenario,
    unit,
    waiting,
)

TAS = "kueue.x-k8s.io/tas"


def test_the_assigner_is_told_what_preemption_can_do() -> None:
    lower = {"withinClusterQueue": "LowerPriority"}
    two = queue("cq", quotas("default", cpu="4"), quotas("spot", cpu="4"), preemption=lower)
    said = {
        "flavors": [{"name": "default"}, {"name": "spot"}],
        "clusterQueues": [two],
        "admitted": [holding("old", "4"), holding("other", "4", flavor="spot")],
        "preemptionOracle": [
            {"flavor": "default", "resource": "cpu", "possibility": "NoCandidates", "borrowingLevelAfter": 0},
            {"flavor": "spot", "resource": "cpu", "possibility": "Preempt", "borrowingLevelAfter": 0},
        ],
    }
    chosen = {"main": {"count": 1, "flavors": {"cpu": {"flavor": "spot", "mode": "Preempt"}}}}
    expect = expecting(inadmissible_or_pending=["default/a"], assignmentMode="Preempt", assignment=chosen)
    assert result_of(unit(**said, expect=expect)).diff == []
    assert result_of(unit(**said, expect=expect | {"assignmentMode": "Fit"})).level == 0
    assert result_of(unit(**said, expect=expect | {"borrowingLevel": 1})).level == 1
    chosen["main"]["flavors"] = {"cpu": {"flavor": "default", "mode": "Preempt"}}
    assert result_of(unit(**said, expect=expect)).level == 1


def test_victims_are_found_for_the_flavors_that_are_given() -> None:
    said = {
        "clusterQueues": [queue(preemption={"withinClusterQueue": "LowerPriority"})],
        "admitted": [holding("old", "4", evicted={"reason": None, "offsetSeconds": 0.0})],
        "pending": [waiting("a", priority=1)],
        "assignmentGiven": {"main": {"cpu": {"flavor": "default", "mode": "Preempt"}}},
    }
    expect = expecting(preemptionTargetCount=1, inadmissible_or_pending=["default/a"])
    assert result_of(unit(**said, expect=expect)).diff == []
    assert result_of(unit(**said, expect=expect | {"preemptionTargetCount": 0})).level == 0
    said["admitted"] = [holding("old", "4")]
    assert result_of(unit(**said, expect=expect | {"preempted": ["default/old"]})).diff == []


def test_victims_have_to_make_room_in_the_topology_that_is_given() -> None:
    """Quota for all, but only where both hosts are emptied do two pods of 2 find a host each."""
    held = [
        holding(name, podSet={"topologyAssignment": domains(**{host: 1})}) for name, host in (("o", "x1"), ("p", "x2"))
    ]
    pods = waiting("a", "2", count=2, priority=1, podSet={"topologyRequest": {"preferred": "kubernetes.io/hostname"}})
    said = {
        "clusterQueues": [queue(preemption={"withinClusterQueue": "LowerPriority"})],
        "admitted": held,
        "pending": [pods],
        "assignmentGiven": {"main": {"cpu": {"flavor": "default", "mode": "Preempt"}}},
    }
    assert result_of(on_topology(level="unit", **said, expect={"preempted": ["default/o", "default/p"]})).diff == []


def test_figures_of_the_tree_are_compared_by_node() -> None:
    queues = [queue("cq", cohortName="c"), queue("other", cohortName="c")]
    said = {"clusterQueues": queues, "pending": [], "admitted": [holding("old", "6")]}
    available = {"cq": [{"flavor": "default", "resource": "cpu", "quantity": "2"}]}
    share = {"name": "cq", "kind": "ClusterQueue", "weightedShare": 250, "dominantResource": "cpu", "borrowing": True}
    assert result_of(unit(**said, expect={"available": available, "shares": [share]})).diff == []
    available["cq"][0]["quantity"] = "2001m"
    assert result_of(unit(**said, expect={"available": available})).diff == [
        "available cq default/cpu: expected 2001, got 2000"
    ]
    assert result_of(unit(**said, expect={"shares": [share | {"weightedShare": 251}]})).level == 0
    extra = [{"flavor": "default", "resource": "cpu", "quantity": "2"}]
    assert result_of(unit(**said, extraRequest=extra, expect={"shares": [share | {"weightedShare": 500}]})).diff == []


@pytest.mark.parametrize(("left", "status"), [("-2", "pass"), ("0", "pass"), ("-1", "fail"), ("2", "fail")])
def test_a_debt_may_be_told_as_nothing_being_left(left: str, status: str) -> None:
    available = {"cq": [{"flavor": "default", "resource": "cpu", "quantity": left}]}
    said = unit(pending=[], admitted=[holding("old", "6")], expect={"available": available})
    assert result_of(said).status == status


def test_the_head_of_a_line_is_who_comes_first() -> None:
    pending = [waiting("a", creationOffsetSeconds=0), waiting("b", priority=1, creationOffsetSeconds=1)]
    assert result_of(unit(pending=pending, expect={"head": "default/b"})).diff == []
    assert result_of(unit(pending=pending, expect={"head": "default/a"})).status == "fail"
    assert result_of(unit(pending=pending, expect={"order": ["b", "a"]})).diff == []


def test_local_queues_are_found_whatever_the_case_of_their_names() -> None:
    said: dict[str, Any] = {
        "config": {"admissionFairSharing": {}},
        "clusterQueues": [queue(admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})],
        "localQueues": [
            {"name": name, "namespace": "default", "clusterQueue": "cq", "fairSharing": {"weight": weight}}
            for name, weight in (("lqa", "1"), ("lqb", "2"))
        ],
        "pending": [waiting("a", queue="lqa", priority=1), waiting("b", queue="lqb")],
        "initialLocalQueueUsage": {"default/lqA": {"cpu": "4"}, "default/lqB": {"cpu": "6"}},
    }
    assert result_of(unit(**said, expect={"head": "default/b"})).diff == []
    assert result_of(unit(**said | {"config": {}}, expect={"head": "default/a"})).diff == []


def test_heads_of_a_cycle_are_ordered_by_what_they_borrow_first() -> None:
    candidates = [
        {"name": "borrows", "priority": 9, "borrowingLevel": 1},
        {"name": "late", "creationOffsetSeconds": 0, "evicted": {"reason": "PodsReadyTimeout", "offsetSeconds": 5}},
        {"name": "early", "creationOffsetSeconds": 1},
    ]
    said = {"pending": [], "clusterQueues": [], "candidates": candidates}
    assert result_of(unit(**said, expect={"order": ["early", "late", "borrows"]})).diff == []
    by_creation = {"waitForPodsReady": {"requeuingStrategy": {"timestamp": "Creation"}}}
    assert result_of(unit(**said, config=by_creation, expect={"order": ["late", "early", "borrows"]})).diff == []


def test_placement_is_asked_without_quota() -> None:
    pods = waiting("a", "2", count=2, podSet={"topologyRequest": {"required": "kubernetes.io/hostname"}})
    failure = {"main": {"class": "InsufficientCapacity", "fits": 1}}
    expect = expecting(inadmissible_or_pending=["default/a"], failure=failure)
    result = result_of(on_topology(level="unit", pending=[pods], expect=expect))
    assert (result.diff, result.notes) == ([], [])
    failure["main"]["fits"] = 2
    assert result_of(on_topology(level="unit", pending=[pods], expect=expect)).notes == [
        "failure.fits: expected 2, got 1"
    ]
    pods["podSets"][0]["topologyRequest"] = {"preferred": "kubernetes.io/hostname"}
    spread = expecting({"default/a": granted(2, topologyAssignment=domains(x1=1, x2=1))})
    assert result_of(on_topology(level="unit", pending=[pods], expect=spread)).diff == []


def test_pods_of_others_take_room_until_they_end_and_pods_of_admissions_count_once() -> None:
    pods = waiting("a", "2", podSet={"topologyRequest": {"required": "kubernetes.io/hostname"}})
    other = {"name": "p", "namespace": "x", "nodeName": "x1", "requests": {"cpu": "1"}}
    told: list[tuple[dict[str, Any], str]] = [
        ({"phase": "Running"}, "x2"),
        ({"phase": "Succeeded"}, "x1"),
        ({"labels": {TAS: "true"}}, "x1"),
    ]
    for said, host in told:
        expect = expecting({"default/a": granted(topologyAssignment=domains(**{host: 1}))})
        found = on_topology(level="unit", pending=[pods], otherPods=[{**other, **said}], expect=expect)
        assert result_of(found).diff == []


@pytest.mark.parametrize(
    ("given", "amount", "wanted"),
    [
        ("always-possible", 4000, Mode.RECLAIM),
        ("always-possible", 4001, Mode.PREEMPT),
        ("no-candidates", 1, Mode.NO_CANDIDATES),
        ([{"flavor": "default", "resource": "cpu", "possibility": "NoCandidates"}], 1, Mode.NO_CANDIDATES),
        ([{"flavor": "default", "resource": "cpu", "possibility": "Reclaim"}], 9000, Mode.RECLAIM),
        ([{"flavor": "spot", "resource": "cpu", "possibility": "NoCandidates"}], 9000, Mode.PREEMPT),
    ],
)
def test_an_oracle_answers_what_is_listed_and_else_that_somebody_would_go(
    given: Any, amount: int, wanted: Mode
) -> None:
    case = case_of(scenario(preemptionOracle=given))
    (facts,) = waiting_of(case)
    cluster_queue = queues_of(case).cluster_queues["cq"]
    assert oracle_of(case)(cluster_queue, facts, ("default", "cpu"), amount).mode is wanted
