"""What a daemon set changes at one look: tables, and how many nodes an update may leave without a serving daemon."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.pod_sights import NOW_S, pod_obj
from shoal.embedded.controllers.daemon_sets.backoff import Backoff
from shoal.embedded.controllers.daemon_sets.daemon_pod import HASH, DaemonPod, Template, by_node
from shoal.embedded.controllers.daemon_sets.eligibility import DaemonNode, NodeEligibility, rule_of
from shoal.embedded.controllers.daemon_sets.plan import DaemonSetState, placement_changes, update_changes

RUNS, STAYS, AWAY = NodeEligibility(True, True), NodeEligibility(False, True), NodeEligibility(False, False)


def daemon(name: str, hashed: str = "new", **daemon_set_status: Any) -> DaemonPod:
    return msgspec.convert(pod_obj(name, labels={HASH: hashed}, **daemon_set_status), DaemonPod)


def state(
    eligibility: dict[str, NodeEligibility], *pods: DaemonPod, surge: int = 0, unavailable: int = 1
) -> DaemonSetState:
    return DaemonSetState(eligibility, by_node(pods), Template("new", "2"), 0, NOW_S, surge, unavailable)


STANDING: dict[str, tuple[DaemonSetState, list[str], list[str]]] = {
    "an empty node gets one": (state({"n1": RUNS}), ["n1"], []),
    "a node that may only keep gets none": (state({"n1": STAYS}), [], []),
    "a node that may only keep keeps": (state({"n1": STAYS}, daemon("a")), [], []),
    "a node that is left loses its own": (state({"n1": AWAY}, daemon("a")), [], ["a"]),
    "what ends is waited for": (state({"n1": RUNS}, daemon("a", ending=True)), [], []),
    "of two the older stays": (state({"n1": RUNS}, daemon("a", age_s=5), daemon("b", age_s=50)), [], ["a"]),
    "a node that is gone takes its pod along": (state({}, daemon("a", node="gone")), [], ["a"]),
    "surging, two may stand": (
        state({"n1": RUNS}, daemon("a", "old"), daemon("b", ready_s=None, age_s=1), surge=1),
        [],
        [],
    ),
    "surging, the old goes when the new serves": (
        state({"n1": RUNS}, daemon("a", "old"), daemon("b", age_s=1), surge=1),
        [],
        ["a"],
    ),
    "surging, an old one that does not serve goes": (
        state({"n1": RUNS}, daemon("a", "old", ready_s=None), daemon("b", ready_s=None, age_s=1), surge=1),
        [],
        ["a"],
    ),
}


@pytest.mark.parametrize("name", STANDING)
def test_one_pod_on_every_node_that_should_have_one(name: str) -> None:
    situation, create, delete = STANDING[name]
    changes = placement_changes(situation)
    assert (changes.create, [pod.name for pod in changes.delete]) == (create, delete)


def test_ended_pods_are_set_apart() -> None:
    changes = placement_changes(state({"n1": RUNS}, daemon("a", phase="Failed", ready_s=None)))
    assert ([pod.name for pod in changes.ended], changes.create, changes.delete) == (["a"], [], [])


NODE_STATES = st.lists(
    st.sampled_from(["empty", "new", "new waiting", "old", "old waiting", "old ending"]), min_size=1, max_size=12
)


@settings(max_examples=examples(80), deadline=None)
@given(NODE_STATES, st.integers(1, 6))
def test_an_update_takes_no_serving_daemon_beyond_what_may_be_missing(states: list[str], unavailable: int) -> None:
    pods = [
        daemon(
            f"pod-{place}",
            state.partition(" ")[0],
            node=f"n{place}",
            ready_s=None if "waiting" in state else 50,
            ending="ending" in state,
        )
        for place, state in enumerate(states)
        if state != "empty"
    ]
    situation = state({f"n{place}": RUNS for place in range(len(states))}, *pods, unavailable=unavailable)
    taken = {pod.name for pod in update_changes(situation).delete}
    serving = {pod.name for pod in pods if pod.is_ready() and not pod.is_terminating()}
    assert len(serving - taken) >= min(len(serving), len(states) - unavailable)
    assert {pod.name for pod in pods if pod.name in taken} <= {
        f"pod-{place}" for place, state in enumerate(states) if state in ("old", "old waiting")
    }
    # And it goes on wherever it may.
    if len(serving) > len(states) - unavailable and "old" in states:
        assert taken


TAINTS: dict[str, tuple[dict[str, Any], list[tuple[str, str]], NodeEligibility]] = {
    "a cordoned node": ({}, [("node.kubernetes.io/unschedulable", "NoSchedule")], RUNS),
    "a node that is not ready": ({}, [("node.kubernetes.io/not-ready", "NoExecute")], RUNS),
    "a new node that is not ready yet": ({}, [("node.kubernetes.io/not-ready", "NoSchedule")], STAYS),
    "a node without network": ({}, [("node.kubernetes.io/network-unavailable", "NoSchedule")], STAYS),
    "a node without network, for host network": (
        {"hostNetwork": True},
        [("node.kubernetes.io/network-unavailable", "NoSchedule")],
        RUNS,
    ),
    "a taint that ends pods": ({}, [("mine", "NoExecute")], AWAY),
    "a taint that is only a wish": ({}, [("mine", "PreferNoSchedule")], RUNS),
    "a tolerated taint": ({"tolerations": [{"operator": "Exists"}]}, [("mine", "NoExecute")], RUNS),
    "another node by name": ({"nodeName": "n2"}, [], AWAY),
    "a selector that does not fit": ({"nodeSelector": {"gpu": "yes"}}, [], AWAY),
}


@pytest.mark.parametrize("name", TAINTS)
def test_how_a_node_is_judged(name: str) -> None:
    spec, taints, expected = TAINTS[name]
    written = [{"key": key, "effect": effect} for key, effect in taints]
    node = msgspec.convert({"metadata": {"name": "n1"}, "spec": {"taints": written}}, DaemonNode)
    assert rule_of(spec).eligibility(node) == expected


def test_failures_wait_twice_as_long_each_time_and_no_longer_than_a_quarter_of_an_hour() -> None:
    backoff, now_s, waits = Backoff(), 0.0, []
    for _ in range(12):
        backoff.next(("uid", "n1"), now_s)
        waits.append(backoff.left_s(("uid", "n1"), now_s))
        now_s += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert backoff.left_s(("uid", "n2"), now_s) == 0
    backoff.forget("uid")
    assert backoff.left_s(("uid", "n1"), now_s) == 0
