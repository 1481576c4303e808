"""What a stateful set does next: tables of situations, and that every muddle ends in order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.pod_sights import NOW_S, sight
from shoal.client.owned_pods.pod_view import PodView
from shoal.embedded.controllers.stateful_sets.plan import REVISION_LABEL, CreatePod, Delete, DesiredSet, Step, steps

OLD, NEW = "db-old", "db-new"


def pod(ordinal: int, revision: str = OLD, **stateful_set_status: Any) -> tuple[int, PodView]:
    return ordinal, sight(f"db-{ordinal}", labels={REVISION_LABEL: revision}, **stateful_set_status)


def asks(replicas: int, **more: Any) -> DesiredSet:
    return DesiredSet(0, replicas, OLD, more.pop("update", OLD), **more)


WAITING: dict[str, Any] = {"phase": "Pending", "ready_s": None}
CASES: dict[str, tuple[DesiredSet, list[tuple[int, PodView]], list[Step]]] = {
    "the first comes first": (asks(3), [], [CreatePod(0, OLD)]),
    "in parallel all come": (asks(2, is_ordered=False), [], [CreatePod(0, OLD), CreatePod(1, OLD)]),
    "the next waits for the last": (asks(3), [pod(0, **WAITING)], []),
    "the next waits for one that ends": (asks(3), [pod(0, ending=True)], []),
    "a hole is filled before more are made": (asks(3), [pod(0), pod(2)], [CreatePod(1, OLD)]),
    "a failed one goes": (asks(2), [pod(0, phase="Failed", ready_s=None), pod(1)], [Delete(0)]),
    "a failed one that ends is waited for": (asks(1), [pod(0, phase="Failed", ready_s=None, ending=True)], []),
    "the highest goes first": (asks(1), [pod(0), pod(1), pod(2)], [Delete(2)]),
    "none goes while one ends": (asks(1), [pod(0), pod(1), pod(2, ending=True)], []),
    "none goes while a lower one is not well": (asks(1), [pod(0), pod(1, **WAITING), pod(2)], [Delete(2)]),
    "none goes while two are not well": (asks(1), [pod(0), pod(1, **WAITING), pod(2, **WAITING)], []),
    "none goes while one that stays is not well": (asks(1), [pod(0, **WAITING), pod(1)], []),
    "what ended is not waited for": (
        asks(0),
        [pod(0, phase="Failed", ready_s=None), pod(1, phase="Failed", ready_s=None)],
        [Delete(1)],
    ),
    "in parallel all go": (asks(0, is_ordered=False), [pod(0), pod(1, **WAITING)], [Delete(1), Delete(0)]),
    "an update starts at the top": (asks(2, update=NEW), [pod(0), pod(1)], [Delete(1)]),
    "an update waits for the one above": (asks(2, update=NEW), [pod(0), pod(1, NEW, **WAITING)], []),
    "an update goes on": (asks(2, update=NEW), [pod(0), pod(1, NEW)], [Delete(0)]),
    "an update stops at its partition": (asks(2, update=NEW, partition=1), [pod(0), pod(1, NEW)], []),
    "below the partition the old is made": (asks(2, update=NEW, partition=1), [pod(1, NEW)], [CreatePod(0, OLD)]),
    "above the partition the new is made": (asks(2, update=NEW, partition=1), [pod(0)], [CreatePod(1, NEW)]),
    "on delete nothing is updated": (asks(1, update=NEW, is_rolling=False), [pod(0)], []),
    "on delete what is made is new": (asks(1, update=NEW, is_rolling=False), [], [CreatePod(0, NEW)]),
    "in parallel a broken old one is updated": (
        asks(2, update=NEW, is_ordered=False),
        [pod(0), pod(1, **WAITING)],
        [Delete(1)],
    ),
    "two may be missing": (
        asks(3, update=NEW, most_unavailable=2),
        [pod(0), pod(1), pod(2)],
        [Delete(2), Delete(1)],
    ),
    "two may be missing and one is": (
        asks(3, update=NEW, most_unavailable=2, is_ordered=False),
        [pod(0), pod(1), pod(2, NEW, **WAITING)],
        [Delete(1)],
    ),
    "not ready for long enough": (asks(2, min_ready_s=60), [pod(0, ready_s=59)], []),
    "ready for long enough": (asks(2, min_ready_s=60), [pod(0, ready_s=60)], [CreatePod(1, OLD)]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_next(name: str) -> None:
    desired, pods, expected = CASES[name]
    assert steps(desired, dict(pods), NOW_S) == expected


def test_many_come_in_parts_and_nothing_else_happens_before_all_are_there() -> None:
    desired = asks(1_510, update=NEW, is_ordered=False)
    pods = dict(pod(ordinal) for ordinal in (*range(10), 5_000))
    found: list[Step] = []
    while len(pods) < 1_511:
        found = steps(desired, pods, NOW_S)
        assert 0 < len(found) <= 500
        assert all(isinstance(step, CreatePod) for step in found)
        pods |= dict(pod(step.ordinal, **WAITING) for step in found)
    assert steps(desired, pods, NOW_S)[0] == Delete(5_000)
    assert steps(asks(0, is_ordered=False), pods, NOW_S)[:2] == [Delete(5_000), Delete(1_509)]
    assert len(steps(asks(0, is_ordered=False), pods, NOW_S)) == 500


POD = st.tuples(
    st.integers(0, 6), st.sampled_from([OLD, NEW]), st.sampled_from(["well", "waiting", "failed", "ending"])
)
TOLD: dict[str, dict[str, Any]] = {
    "well": {},
    "waiting": WAITING,
    "failed": {"phase": "Failed", "ready_s": None},
    "ending": {"ending": True},
}


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(POD, max_size=7), st.integers(0, 5), st.integers(0, 3), st.booleans(), st.integers(0, 3))
def test_any_muddle_ends_in_order(
    found: list[tuple[int, str, str]], replicas: int, start: int, is_ordered: bool, partition: int
) -> None:
    pods = dict(pod(ordinal, revision, **TOLD[state]) for ordinal, revision, state in found)
    desired = DesiredSet(start, replicas, OLD, NEW, is_ordered=is_ordered, partition=partition)
    for _ in range(60):
        now = steps(desired, pods, NOW_S)
        assert not is_ordered or len(now) <= 1
        for step in now:
            if isinstance(step, CreatePod):
                assert step.ordinal not in pods
                pods |= dict([pod(step.ordinal, step.revision, **WAITING)])
            else:
                pods |= dict([pod(step.ordinal, ending=True)])
        if not now:
            # Time passes: what ends is gone, what waits is well.
            pods = {
                ordinal: pod(ordinal, one.metadata.labels[REVISION_LABEL])[1] if one.status.phase == "Pending" else one
                for ordinal, one in pods.items()
                if not one.is_terminating()
            }
            if not steps(desired, pods, NOW_S):
                break
    assert sorted(pods) == list(range(start, start + replicas))
    above = [one for ordinal, one in pods.items() if ordinal >= start + partition]
    assert all(one.metadata.labels[REVISION_LABEL] == NEW for one in above)
    assert all(one.status.phase == "Running" for one in pods.values())
