"""How many nodes may start, and which."""

from __future__ import annotations

from typing import Any

import pytest

from build.upgrading import NEW, decided, node, policy
from shoal.operator.upgrades.decision import NodeAction
from shoal.operator.upgrades.limits import upgrade_slots
from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.policy import UpgradeOptions, UpgradePolicy
from shoal.operator.upgrades.states import REQUESTED, SKIP_LABEL


def nodes(*states: str, **facts: Any) -> list[UpgradeNode]:
    return [node(f"{state}-{number}", state, **facts) for number, state in enumerate(states)]


WAITING = nodes(*["upgrade-required"] * 4)
PROGRESS = (
    *("cordon-required", "wait-for-jobs-required", "pod-deletion-required", "drain-required", "pod-restart-required"),
    *("validation-required", "uncordon-required", "upgrade-failed"),
)


@pytest.mark.parametrize(
    ("others", "fields", "slots"),
    [
        pytest.param([], {}, 4, id="without limits all waiting nodes start"),
        pytest.param(nodes("", "upgrade-done"), {}, 4, id="nodes that need no upgrade do not count"),
        pytest.param([], {"maxParallelUpgrades": 3}, 3, id="at most the parallel upgrades"),
        pytest.param([], {"maxParallelUpgrades": 9}, 6 - 2, id="a large limit is limited by the number of nodes"),
        pytest.param(nodes("drain-required"), {"maxParallelUpgrades": 3}, 2, id="a node in progress uses a place"),
        pytest.param(nodes("upgrade-failed"), {"maxParallelUpgrades": 1}, 0, id="a failed node uses a place"),
        pytest.param(nodes("drain-required", "drain-required"), {"maxParallelUpgrades": 1}, 0, id="never negative"),
        pytest.param([], {"maxUnavailable": 3}, 3, id="at most the unavailable nodes"),
        pytest.param([], {"maxUnavailable": 0}, 0, id="no node may be unavailable"),
        pytest.param([], {"maxUnavailable": "0%"}, 0, id="no part of the nodes may be unavailable"),
        pytest.param([], {"maxUnavailable": "50%"}, 2, id="half of four"),
        pytest.param(nodes(""), {"maxUnavailable": "50%"}, 3, id="half of five is rounded up"),
        pytest.param([], {"maxUnavailable": "1%"}, 1, id="a small part is rounded up to one"),
        pytest.param([], {"maxUnavailable": "200%"}, 4, id="more than all"),
        pytest.param(
            nodes("upgrade-done", is_unschedulable=True), {"maxUnavailable": 3}, 2, id="an unschedulable node counts"
        ),
        pytest.param(nodes("", is_ready=False), {"maxUnavailable": 3}, 2, id="a node that is not ready counts"),
        pytest.param(nodes("", is_ready=False, is_unschedulable=True), {"maxUnavailable": 3}, 2, id="both count once"),
        pytest.param(nodes("cordon-required"), {"maxUnavailable": 3}, 2, id="a node that is cordoned soon counts"),
        pytest.param(
            nodes("cordon-required", is_unschedulable=True),
            {"maxUnavailable": 3},
            1,
            id="an unschedulable node that is cordoned soon counts twice",
        ),
        pytest.param(
            nodes("drain-required"), {"maxUnavailable": 3}, 3, id="a schedulable node in progress is available"
        ),
        pytest.param(nodes("drain-required", "x"), {"maxUnavailable": "100%"}, 4, id="a node of others is no node"),
        pytest.param(
            nodes("node-maintenance-required", "post-maintenance-required"),
            {"maxParallelUpgrades": 2, "maxUnavailable": "50%"},
            2,
            id="nodes under maintenance use no place and are no part of all",
        ),
        pytest.param(
            nodes("node-maintenance-required", is_unschedulable=True),
            {"maxUnavailable": 2},
            1,
            id="an unschedulable node under maintenance is unavailable",
        ),
        pytest.param(
            nodes("upgrade-done", is_unschedulable=True), {}, 4, id="without a limit unavailable nodes take no place"
        ),
        pytest.param(
            nodes("upgrade-done", is_unschedulable=True),
            {"maxUnavailable": "100%"},
            4,
            id="where all nodes may be unavailable those that are take no place",
        ),
        pytest.param([], {"maxParallelUpgrades": 3, "maxUnavailable": 2}, 2, id="the smaller of both limits"),
    ],
)
def test_the_number_of_nodes_that_may_start(others: list[UpgradeNode], fields: dict[str, Any], slots: int) -> None:
    assert upgrade_slots([*WAITING, *others], policy(**fields)) == slots


@pytest.mark.parametrize("state", PROGRESS)
def test_each_state_of_an_upgrade_uses_one_place(state: str) -> None:
    assert upgrade_slots([*WAITING, *nodes(state)], policy(maxParallelUpgrades=2)) == 1


@pytest.mark.parametrize("limit", [None, "100%", 9])
def test_nodes_that_are_not_ready_may_start_where_all_may_be_unavailable(limit: int | str | None) -> None:
    unready = nodes("upgrade-required", is_ready=False)
    assert upgrade_slots([*unready, *WAITING[1:]], policy(maxUnavailable=limit)) == 4


@pytest.mark.parametrize("limit", [None, "100%", 4])
def test_no_node_may_start_where_all_are_unavailable(limit: int | str | None) -> None:
    unready = nodes(*["upgrade-required"] * 4, is_ready=False)
    assert upgrade_slots(unready, policy(maxUnavailable=limit)) == 0


def test_without_nodes_none_may_start() -> None:
    done = decided(by=policy(maxUnavailable="25%"))
    assert (done.decisions, done.slots) == ((), 0)


@pytest.mark.parametrize("off", [UpgradePolicy(), policy(autoUpgrade=False, maxParallelUpgrades=2)])
def test_nothing_is_decided_without_automatic_upgrades(off: UpgradePolicy) -> None:
    done = decided(*WAITING, *nodes("cordon-required", ""), by=off)
    assert (done.decisions, done.slots) == ((), None)


def started(*them: UpgradeNode, **fields: Any) -> list[str]:
    return [one.node for one in decided(*them, by=policy(**fields)).decisions if one.state == "cordon-required"]


def waiting(name: str, **facts: Any) -> UpgradeNode:
    return node(name, "upgrade-required", **facts)


def test_nodes_start_in_the_order_of_the_list() -> None:
    assert started(waiting("c"), waiting("a"), waiting("b"), maxParallelUpgrades=2) == ["c", "a"]


def test_a_skipped_node_uses_no_place_and_loses_its_request() -> None:
    skipped = waiting("a", labels={SKIP_LABEL: "true"}, annotations={REQUESTED: "true"})
    first, second = decided(skipped, waiting("b"), by=policy(maxParallelUpgrades=1)).decisions
    assert (first.state, first.annotations) == ("upgrade-required", {REQUESTED: None})
    assert first.reason == "skipped by the label nvidia.com/gpu-driver-upgrade.skip"
    assert second.state == "cordon-required"


def test_only_the_value_true_skips_a_node() -> None:
    assert started(waiting("a", labels={SKIP_LABEL: "yes"})) == ["a"]


def test_a_skipped_node_that_is_unschedulable_does_not_start() -> None:
    assert started(waiting("a", labels={SKIP_LABEL: "true"}, is_unschedulable=True)) == []


def test_a_node_that_waits_loses_its_request_too() -> None:
    busy = nodes("drain-required")
    *_, held = decided(*busy, waiting("b", annotations={REQUESTED: "true"}), by=policy(maxParallelUpgrades=1)).decisions
    assert (held.state, held.annotations) == ("upgrade-required", {REQUESTED: None})
    assert held.reason == "waits for other nodes: maxParallelUpgrades or maxUnavailable"


def test_an_unschedulable_node_starts_without_a_free_place() -> None:
    them = (*nodes("drain-required"), waiting("b"), waiting("c", is_unschedulable=True))
    assert started(*them, maxParallelUpgrades=1) == ["c"]


def test_an_unschedulable_node_uses_a_place_that_is_free() -> None:
    assert started(waiting("a", is_unschedulable=True), waiting("b"), maxParallelUpgrades=1) == ["a"]


def test_a_place_that_becomes_free_is_used_in_the_next_pass() -> None:
    first = decided(waiting("a"), node("b", "uncordon-required", NEW), by=policy(maxParallelUpgrades=1))
    assert [one.state for one in first.decisions] == ["upgrade-required", "upgrade-done"]
    assert first.decisions[1].action is NodeAction.UNCORDON
    assert started(waiting("a"), node("b", "upgrade-done", NEW), maxParallelUpgrades=1) == ["a"]


def test_a_node_moves_one_state_only() -> None:
    assert [one.state for one in decided(node("a")).decisions] == ["upgrade-required"]


def test_a_failure_stops_the_others_if_the_options_say_so() -> None:
    options = UpgradeOptions(stops_at_failure=True)
    cordoned = node("cordoned", "upgrade-required", is_unschedulable=True)
    fleet = [*WAITING, cordoned, node("broken", "upgrade-failed", NEW, is_unschedulable=True)]
    before = decided(*WAITING, cordoned, options=options).decisions
    assert {one.state for one in before} == {"cordon-required"}
    stopped = [one for one in decided(*fleet, options=options).decisions if one.node != "broken"]
    assert {one.state for one in stopped} == {"upgrade-required"}
    assert {one.reason for one in stopped} == {"waits: the upgrade of node broken has failed"}
    assert {one.state for one in decided(*fleet).decisions if one.node == "cordoned"} == {"cordon-required"}
