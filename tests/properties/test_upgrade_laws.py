"""Laws of driver upgrades over whole rollouts: limits, nodes that were unschedulable, progress, failures."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.upgrading import (
    FAILING,
    NEW,
    NOW_S,
    OLD,
    ORPHAN,
    STARTING,
    VALIDATOR,
    UpgradingFleet,
    node,
    policy,
)
from shoal.operator.upgrades.nodes import UpgradeNode, WorkloadPod
from shoal.operator.upgrades.passes import decide_pass
from shoal.operator.upgrades.policy import UpgradeOptions, UpgradePolicy
from shoal.operator.upgrades.states import (
    JOBS_SINCE,
    REQUESTED,
    SKIP_LABEL,
    TRANSITIONS,
    VALIDATION_SINCE,
    WAITS_FOR_SAFE_LOAD,
    WAS_UNSCHEDULABLE,
    UpgradeState,
)

LONGEST = 15
"""More passes than one node needs from its first state to the last, with the waits for jobs and for its driver pod."""
JOB = WorkloadPod("job", {"app": "job"}, "Running")

LIMITS = st.fixed_dictionaries(
    {
        "maxParallelUpgrades": st.integers(0, 4),
        "maxUnavailable": st.one_of(st.none(), st.integers(0, 5), st.sampled_from(["0%", "25%", "50%", "100%"])),
        "drain": st.fixed_dictionaries({"enable": st.booleans()}),
        "waitForCompletion": st.sampled_from([None, {"podSelector": "app=job", "timeoutSeconds": 60}]),
    }
)
POLICIES = LIMITS.map(lambda fields: policy(**fields))
OPTIONS = st.builds(UpgradeOptions, deletes_pods=st.booleans(), validates=st.booleans())


@st.composite
def fleets(draw: st.DrawFn, *, is_healthy: bool = False) -> list[UpgradeNode]:
    """Before a rollout, some nodes with an old driver, some cordoned by hand, some not ready."""
    rarely = st.sampled_from([False, False, False, True])
    return [
        node(
            f"n{number}",
            draw(st.sampled_from(["", "upgrade-done"])),
            draw(st.sampled_from([OLD, OLD, NEW, ORPHAN])),
            is_unschedulable=draw(rarely),
            is_ready=is_healthy or not draw(rarely),
            annotations=draw(st.sampled_from([{}, {}, {REQUESTED: "true"}, {WAITS_FOR_SAFE_LOAD: "pod"}])),
            labels=draw(st.sampled_from([{}, {}, {}, {SKIP_LABEL: "true"}])),
            pods=(VALIDATOR, JOB),
        )
        for number in range(draw(st.integers(1, 8)))
    ]


@settings(max_examples=examples(100), deadline=None)
@given(nodes=fleets(), by=POLICIES, options=OPTIONS)
def test_nodes_in_use_never_exceed_the_parallel_upgrades(
    nodes: list[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions
) -> None:
    fleet = UpgradingFleet(nodes, by, options)
    for _ in range(LONGEST * len(nodes)):
        fleet.run_pass()
        in_use = [name for name in fleet.in_progress() if not fleet.started[name].is_unschedulable]
        assert not by.max_parallel or len(in_use) <= by.max_parallel


@settings(max_examples=examples(100), deadline=None)
@given(nodes=fleets(), by=POLICIES, options=OPTIONS)
def test_no_more_nodes_are_unavailable_than_the_limit_and_those_that_were_before(
    nodes: list[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions
) -> None:
    fleet = UpgradingFleet(nodes, by, options)
    most = max(by.most_unavailable(len(nodes)), fleet.unavailable())
    for _ in range(LONGEST * len(nodes)):
        fleet.run_pass()
        assert fleet.unavailable() <= most


@settings(max_examples=examples(100), deadline=None)
@given(nodes=fleets(), by=POLICIES, options=OPTIONS)
def test_a_node_that_was_unschedulable_remains_so_throughout(
    nodes: list[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions
) -> None:
    fleet = UpgradingFleet(nodes, by, options)
    before = {one.name for one in nodes if one.is_unschedulable}
    for _ in range(LONGEST * len(nodes)):
        fleet.run_pass()
        assert not fleet.uncordoned & before
        assert before <= {one.name for one in fleet.nodes.values() if one.is_unschedulable}


@settings(max_examples=examples(100), deadline=None)
@given(nodes=fleets(is_healthy=True), by=POLICIES, options=OPTIONS)
def test_a_healthy_fleet_ends_done_and_as_schedulable_as_before(
    nodes: list[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions
) -> None:
    assume(by.most_unavailable(len(nodes)) > sum(one.is_unschedulable for one in nodes))
    fleet = UpgradingFleet(nodes, by, options)
    fleet.run(LONGEST * len(nodes) + 2)
    for before in nodes:
        after = fleet.nodes[before.name]
        assert after.is_unschedulable == before.is_unschedulable
        if before.is_skipped:
            assert after.state in (UpgradeState.DONE, UpgradeState.UPGRADE_REQUIRED)
            continue
        assert after.state == UpgradeState.DONE
        assert after.annotations == {}
        needed = before.driver_pod is OLD or before.annotations
        assert (after.driver_pod is NEW) == (bool(needed) or before.driver_pod is NEW)
    before_rest = dict(fleet.nodes)
    fleet.run_pass()
    assert fleet.nodes == before_rest


@settings(max_examples=examples(100), deadline=None)
@given(size=st.integers(2, 7), parallel=st.integers(1, 4), broken=st.sets(st.integers(0, 6)), options=OPTIONS)
def test_a_failed_node_keeps_its_place_and_gives_it_back_when_its_driver_runs(
    size: int, parallel: int, broken: set[int], options: UpgradeOptions
) -> None:
    nodes = [node(f"n{number}", pods=(VALIDATOR,)) for number in range(size)]
    names = {f"n{number}" for number in broken if number < size}
    fleet = UpgradingFleet(nodes, policy(maxParallelUpgrades=parallel), options, broken=names)
    fleet.run(LONGEST * size)
    failed = [name for name, state in fleet.states().items() if state == UpgradeState.FAILED]
    assert set(failed) <= names
    # The rollout ends only when failed nodes use all places; else every other node is done.
    assert len(failed) == min(parallel, len(names))
    if len(failed) < parallel:
        assert {name for name, state in fleet.states().items() if state == UpgradeState.DONE} == set(fleet.nodes) - set(
            failed
        )
    fleet.broken = set()
    for name in failed:
        fleet.nodes[name] = node(name, "upgrade-failed", STARTING, is_unschedulable=True, pods=(VALIDATOR,))
    fleet.run(LONGEST * size)
    assert set(fleet.states().values()) == {"upgrade-done"}
    assert fleet.unavailable() == 0


TIMES = st.sampled_from(["", "soon", str(NOW_S), str(NOW_S - 100), str(NOW_S - 10_000)])
ANY_NODE: dict[str, st.SearchStrategy[Any]] = {
    "state": st.sampled_from([*UpgradeState, "painted"]),
    "driver_pod": st.sampled_from([OLD, NEW, ORPHAN, STARTING, FAILING, None]),
    "is_unschedulable": st.booleans(),
    "is_ready": st.booleans(),
    "annotations": st.dictionaries(
        st.sampled_from([REQUESTED, WAS_UNSCHEDULABLE, WAITS_FOR_SAFE_LOAD, JOBS_SINCE, VALIDATION_SINCE, "other"]),
        st.one_of(TIMES, st.just("true")),
    ),
    "labels": st.sampled_from([{}, {SKIP_LABEL: "true"}]),
    "pods": st.lists(st.sampled_from([VALIDATOR, JOB, WorkloadPod("v", VALIDATOR.labels)]), max_size=3).map(tuple),
}


@st.composite
def any_nodes(draw: st.DrawFn) -> list[UpgradeNode]:
    return [node(f"n{number}", **draw(st.fixed_dictionaries(ANY_NODE))) for number in range(draw(st.integers(0, 6)))]


@settings(max_examples=examples(150), deadline=None)
@given(nodes=any_nodes(), by=POLICIES, options=OPTIONS)
def test_a_node_in_any_state_moves_at_most_one_state_of_the_list(
    nodes: list[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions
) -> None:
    done = decide_pass(nodes, by, options, NOW_S)
    facts = {one.name: one for one in nodes}
    for decision in done.decisions:
        before = facts[decision.node]
        following = {str(after) for state, states in TRANSITIONS.items() if state == before.state for after in states}
        assert decision.state in {before.state, *following}
        assert decision.state == before.state or decision.reason
        removed = {name for name, text in decision.annotations.items() if text is None}
        assert removed <= set(before.annotations)
    assert decide_pass(nodes, by, options, NOW_S) == done


@settings(max_examples=examples(150), deadline=None)
@given(nodes=any_nodes(), by=POLICIES, options=OPTIONS)
def test_only_nodes_that_are_free_to_start_depend_on_other_nodes(
    nodes: list[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions
) -> None:
    together = {one.node: one for one in decide_pass(nodes, by, options, NOW_S).decisions}
    for one in nodes:
        if one.state != UpgradeState.UPGRADE_REQUIRED:
            assert tuple(filter(None, [together.get(one.name)])) == decide_pass([one], by, options, NOW_S).decisions


@settings(max_examples=examples(150), deadline=None)
@given(nodes=any_nodes(), by=POLICIES, options=OPTIONS)
def test_the_slots_are_used_as_far_as_nodes_wait(
    nodes: list[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions
) -> None:
    done = decide_pass(nodes, by, options, NOW_S)
    decided = {one.node: one.state for one in done.decisions}
    free = [one for one in nodes if one.state == UpgradeState.UPGRADE_REQUIRED and not one.is_skipped]
    started = [one for one in free if decided[one.name] == UpgradeState.CORDON_REQUIRED]
    assert done.slots is not None
    assert len(started) >= min(done.slots, len(free))
    assert sum(not one.is_unschedulable for one in started) <= done.slots
