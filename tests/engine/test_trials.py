"""A trial leaves no trace: whatever is tried through the ledger and rolled back, the facts are what they were."""

from __future__ import annotations

import pytest

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.engine.device_demand import compute_grant
from shoal.engine.ledger import Ledger
from shoal.units.errors import BugError

WANTED = ask().cpu(1).share(300).port(80)


def world() -> Scenario:
    there = Scenario(node("n").cpu(8).gpus(2), node("m").cpu(8).gpus(2), policy="BestFit")
    there.bind("old", ask().cpu(2).gpus(1).port(443), "n", devices=(1,))
    for index in range(3):
        there.arrive(f"p{index}", WANTED if index else WANTED.cpu(2))
    return there


def test_a_placement_rolled_back_leaves_no_trace() -> None:
    there = world()
    before = facts_of(there.cluster)
    ledger = Ledger(there.cluster)
    ledger.place("p1", 0, compute_grant((0,), 300))
    assert facts_of(there.cluster) != before
    assert there.pieces("n") == [700, 0]
    ledger.rollback()
    assert facts_of(there.cluster) == before


def test_an_eviction_rolled_back_leaves_no_trace() -> None:
    there = world()
    before = facts_of(there.cluster)
    ledger = Ledger(there.cluster)
    ledger.evict("old")
    assert there.free("n") == 8000
    assert there.pieces("n") == [1000, 1000]
    ledger.rollback()
    assert facts_of(there.cluster) == before


def test_a_trial_goes_back_to_any_of_its_marks() -> None:
    there = world()
    ledger = Ledger(there.cluster)
    snapshots = [(ledger.mark(), facts_of(there.cluster))]
    for key, row in (("p0", 0), ("p1", 1)):
        ledger.place(key, row, compute_grant((0,), 300))
        snapshots.append((ledger.mark(), facts_of(there.cluster)))
    ledger.evict("old")
    snapshots.append((ledger.mark(), facts_of(there.cluster)))
    ledger.evict("p0")
    for mark, facts in reversed(snapshots):
        ledger.rollback(mark)
        assert facts_of(there.cluster) == facts


def test_a_pod_evicted_and_placed_again_in_a_trial_comes_back_as_it_was() -> None:
    there = world()
    before = facts_of(there.cluster)
    ledger = Ledger(there.cluster)
    ledger.place("p1", 0, compute_grant((0,), 300))
    ledger.evict("p1")
    ledger.rollback()
    assert facts_of(there.cluster) == before
    assert [place.pod for place in there.round().placed] == ["p0", "p1"]
    assert there.waiting() == ["p2"], "one port, two nodes"


def test_what_is_committed_stays() -> None:
    there = world()
    ledger = Ledger(there.cluster)
    ledger.place("p1", 0, compute_grant((0,), 300))
    ledger.commit()
    after = facts_of(there.cluster)
    ledger.rollback()
    assert facts_of(there.cluster) == after
    assert there.placed()["p1"] == "n"


def test_after_a_rollback_the_line_is_in_its_old_order() -> None:
    there = world()
    ledger = Ledger(there.cluster)
    for key in ("p2", "p0", "p1"):
        ledger.place(key, 0, compute_grant((0,), 300))
    ledger.rollback()
    assert there.waiting() == ["p0", "p1", "p2"]
    assert [place.pod for place in there.round().placed] == ["p0", "p1"]


def test_after_a_rollback_keys_equal_those_of_a_fresh_shape() -> None:
    there = world()
    keys = there.shape(WANTED).keys().tolist()
    ledger = Ledger(there.cluster)
    ledger.evict("old")
    ledger.place("p1", 0, compute_grant((1,), 300))
    assert there.shape(WANTED).keys().tolist() != keys
    ledger.rollback()
    assert there.shape(WANTED).keys().tolist() == keys == there.fresh_shape(WANTED).keys().tolist()


def test_placing_a_pod_that_does_not_wait_is_a_bug_and_changes_nothing() -> None:
    there = world()
    before = facts_of(there.cluster)
    with pytest.raises(BugError, match="ghost"):
        Ledger(there.cluster).place("ghost", 0, None)
    assert facts_of(there.cluster) == before
