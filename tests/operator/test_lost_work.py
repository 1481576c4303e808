"""The order of nodes by the work that their drain would lose, also against the simplest possible search."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.upgrading import decided, node, policy
from shoal.operator.upgrades.lost_work import DrainedPod, NodeWork, by_lost_work
from shoal.operator.upgrades.policy import UpgradeOptions
from shoal.operator.upgrades.states import SKIP_LABEL

NOW_S = 1000
ORDERED = UpgradeOptions(least_lost_work_first=True)


def pod(on: str, gpus: int = 1, since_s: float = 0, gang: str = "", priority: int = 0) -> DrainedPod:
    return DrainedPod(f"default/{on}-{gpus}-{gang}", on, gpus * 1000, since_s, gang, priority)


def order(nodes: str, *pods: DrainedPod, draining: str = "", **spare: int) -> str:
    return "".join(by_lost_work(list(nodes), NodeWork(pods, spare), NOW_S, list(draining)))


@pytest.mark.parametrize(
    ("nodes", "pods", "expected"),
    [
        pytest.param("cab", [], "cab", id="without work the order of the list holds"),
        pytest.param("abc", [pod("a"), pod("b")], "cab", id="an idle node comes first"),
        pytest.param("ab", [pod("a", 8), pod("b", 1)], "ba", id="fewer GPUs come first"),
        pytest.param("ab", [pod("a", 1, 100), pod("b", 8, 990)], "ba", id="less time since the checkpoint comes first"),
        pytest.param("ab", [pod("a", priority=9), pod("b", priority=1)], "ba", id="of equals the lower priority"),
        pytest.param("ab", [pod("a", 0, priority=1), pod("b", 0)], "ba", id="pods without GPUs lose no GPU-seconds"),
        pytest.param("ab", [pod("a", 0, priority=-5)], "ba", id="a node without pods precedes one of low priority"),
        pytest.param("ab", [pod("a", 1, 2000), pod("b", 1, 999)], "ab", id="a checkpoint in the future loses nothing"),
        pytest.param(
            "ab", [pod("a", 1, gang="g"), pod("b", 8)], "ba", id="a stopped gang weighs more than GPU-seconds"
        ),
        pytest.param(
            "ab",
            [pod("a", 1, gang="g"), pod("x", 8, gang="g"), pod("b", 2, gang="h")],
            "ba",
            id="the whole gang is lost, also on other nodes",
        ),
        pytest.param(
            "abcd",
            [pod("a", 1, gang="g"), pod("b", 1, gang="h"), pod("c", 9, gang="g"), pod("d", 9, gang="h")],
            "acbd",
            id="the other node of a stopped gang follows at once",
        ),
    ],
)
def test_the_order(nodes: str, pods: Sequence[DrainedPod], expected: str) -> None:
    assert order(nodes, *pods) == expected


def test_a_gang_with_spare_members_does_not_stop() -> None:
    pods = (pod("a", 1, gang="g"), pod("b", 1, gang="h"), pod("x", 9, gang="g"))
    assert order("ba", *pods) == "ba"
    assert order("ba", *pods, g=1) == "ab"


def test_spare_members_are_used_once() -> None:
    """The first of both nodes uses the spare member; then the second one would stop the gang."""
    pods = (pod("a", 1, gang="g"), pod("b", 1, gang="g"), pod("x", 1, gang="g"), pod("c", 1, 500))
    assert order("abc", *pods, g=1) == "cab"
    assert order("abd", *pods, pod("d", 1, gang="h"), g=1) == "adb"


def test_members_that_are_gone_already_are_not_lost_again() -> None:
    gang = (pod("a", 8, gang="g"), pod("b", 1, gang="g"), pod("b", 1, 1, gang="g"))
    assert order("cba", *gang, pod("c", 5, gang="h"), g=1) == "abc"


def test_a_gang_that_stops_anyway_costs_nothing() -> None:
    pods = (pod("a", 8, gang="g"), pod("z", 8, gang="g"), pod("b", 1))
    assert order("ab", *pods) == "ba"
    assert order("ab", *pods, draining="z") == "ab"


WORKS = st.lists(
    st.builds(
        pod,
        on=st.sampled_from("abcdef"),
        gpus=st.integers(0, 4),
        since_s=st.integers(900, 1001),
        gang=st.sampled_from(["", "g", "h", "k"]),
        priority=st.integers(-2, 2),
    ),
    max_size=14,
)
SPARE = st.dictionaries(st.sampled_from("ghk"), st.integers(0, 3))


@settings(max_examples=examples(150), deadline=None)
@given(pods=WORKS, spare=SPARE, draining=st.sets(st.sampled_from("ef")))
def test_each_node_is_the_cheapest_of_those_that_are_left(
    pods: list[DrainedPod], spare: dict[str, int], draining: set[str]
) -> None:
    work = NodeWork(tuple(pods), spare)
    found = by_lost_work(list("dcba"), work, NOW_S, draining)
    assert sorted(found) == list("abcd")
    gone = set(draining)
    for number, name in enumerate(found):
        left = found[number:]
        best = min(left, key=lambda one: (_plain_loss(one, work, gone), "dcba".index(one)))
        assert name == best
        gone.add(name)


def _plain_loss(name: str, work: NodeWork, gone: set[str]) -> tuple[int, int, int]:
    """The difference between what is stopped with and without this node."""
    with_it = gone | {name}
    before = _stopped(work, gone)
    new = [pod for pod in _stopped(work, with_it) if pod not in before]
    gangs = {pod.gang for pod in work.pods if pod.gang}
    stopped = [gang for gang in gangs if _is_stopped(gang, work, with_it) and not _is_stopped(gang, work, gone)]
    milli_seconds = sum(round(max(0, NOW_S - pod.saved_s) * pod.gpus_milli) for pod in new)
    return len(stopped), milli_seconds, max((pod.priority for pod in new), default=-(2**31))


def _is_stopped(gang: str, work: NodeWork, gone: set[str]) -> bool:
    return sum(pod.node in gone for pod in work.pods if pod.gang == gang) > work.spare_members.get(gang, 0)


def _stopped(work: NodeWork, gone: set[str]) -> list[DrainedPod]:
    return [pod for pod in work.pods if pod.node in gone or (pod.gang and _is_stopped(pod.gang, work, gone))]


WAITING = (node("a", "upgrade-required"), node("b", "upgrade-required"), node("c", "upgrade-required"))
BUSY = NodeWork((pod("a", 8), pod("b", 4)))


def started(work: NodeWork | None, options: UpgradeOptions) -> list[str]:
    done = decided(*WAITING, by=policy(maxParallelUpgrades=1), options=options, work=work, now_s=NOW_S)
    assert [one.node for one in done.decisions] == ["a", "b", "c"]
    return [one.node for one in done.decisions if one.state == "cordon-required"]


def test_the_work_decides_only_if_the_option_is_on() -> None:
    assert started(BUSY, ORDERED) == ["c"]
    assert started(BUSY, UpgradeOptions()) == ["a"]
    assert started(None, ORDERED) == ["a"]


def test_the_option_changes_the_order_and_no_limit() -> None:
    for slots in range(4):
        done = decided(*WAITING, by=policy(maxUnavailable=slots), options=ORDERED, work=BUSY, now_s=NOW_S)
        assert sum(one.state == "cordon-required" for one in done.decisions) == slots == done.slots


def test_a_skipped_node_keeps_its_state_in_any_order() -> None:
    skipped = node("c", "upgrade-required", labels={SKIP_LABEL: "true"})
    done = decided(*WAITING[:2], skipped, by=policy(maxParallelUpgrades=1), options=ORDERED, work=BUSY, now_s=NOW_S)
    assert [one.state for one in done.decisions] == ["upgrade-required", "cordon-required", "upgrade-required"]


def test_a_gang_on_a_node_in_progress_is_stopped_first() -> None:
    """The gang on b is stopped by the drain of d anyway, so its other node is drained next."""
    draining = node("d", "wait-for-jobs-required")
    gang = NodeWork((pod("a", 1), pod("b", 8, gang="g"), pod("d", 8, gang="g"), pod("c", 1)))
    done = decided(*WAITING, draining, by=policy(maxParallelUpgrades=2), options=ORDERED, work=gang, now_s=NOW_S)
    assert [one.node for one in done.decisions if one.state == "cordon-required"] == ["b"]
