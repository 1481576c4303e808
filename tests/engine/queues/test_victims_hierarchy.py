"""Preemption through cohorts of cohorts: whose quota the workload has a right to, and who stands in its way."""

from __future__ import annotations

import pytest

from build.asking import HERE, LOWER_HERE_RECLAIM_ANY, RECLAIMED, WHILE_BORROWING, runs, yielding
from build.queues import cluster_queue, cohort, limited, queues
from shoal.engine.queues.facts import PreemptionRules, WorkloadFacts
from shoal.engine.queues.state import Queues

THRESHOLD_0 = PreemptionRules("LowerPriority", "LowerPriority", "LowerPriority", 0)


def firm(*workloads: WorkloadFacts, rules: PreemptionRules = LOWER_HERE_RECLAIM_ANY) -> Queues:
    """A department with four cores and two queues in it, and a queue outside; whoever uses anything borrows it."""
    return queues(
        cohort("root", cpu=1),
        cohort("department", parent="root", cpu=4),
        cluster_queue("asking", cohort="department", rules=rules, cpu=0),
        cluster_queue("neighbour", cohort="department", cpu=0),
        cluster_queue("outsider", cohort="root", cpu=0),
        *workloads,
    )


def test_quota_of_the_department_is_taken_back_from_outside_whatever_the_priority() -> None:
    world = firm(runs("one", "outsider", priority=8, cpu=2), runs("two", "outsider", priority=9, cpu=3))
    assert yielding(world, "asking", cpu=2) == {"one": RECLAIMED}
    assert yielding(world, "asking", cpu=4) == {"one": RECLAIMED, "two": RECLAIMED}


def test_a_neighbour_yields_only_to_who_stays_within_quota() -> None:
    world = firm(runs("near", "neighbour", priority=-9, cpu=4), runs("far", "outsider", cpu=1))
    assert yielding(world, "asking", cpu=1) == {}


def test_outsiders_come_before_neighbours() -> None:
    world = firm(
        runs("far", "outsider", priority=-1, cpu=2),
        runs("near", "neighbour", priority=-2, cpu=1),
        runs("far-high", "outsider", priority=1, cpu=2),
        rules=THRESHOLD_0,
    )
    assert yielding(world, "asking", cpu=2) == {"far": RECLAIMED}
    assert yielding(world, "asking", cpu=3) == {"far": RECLAIMED, "near": WHILE_BORROWING}


def test_neighbours_come_before_the_own_queue() -> None:
    world = firm(
        runs("near", "neighbour", priority=-1, cpu=3), runs("own", "asking", priority=-9, cpu=2), rules=THRESHOLD_0
    )
    assert yielding(world, "asking", cpu=2) == {"near": WHILE_BORROWING}
    assert yielding(world, "asking", cpu=4) == {"near": WHILE_BORROWING, "own": HERE}


def test_one_who_is_going_anyway_comes_before_all() -> None:
    world = firm(
        runs("far", "outsider", priority=-9, cpu=1),
        runs("near", "neighbour", priority=-1, cpu=4, evicted=True),
        rules=THRESHOLD_0,
    )
    assert yielding(world, "asking", cpu=1) == {"near": WHILE_BORROWING}


def test_a_department_within_its_quota_keeps_what_its_queues_borrow_of_each_other() -> None:
    """The other department's queue borrows, but only what its department has."""
    world = queues(
        cohort("root"),
        cohort("left", parent="root", cpu=3),
        cohort("right", parent="root", cpu=3),
        cluster_queue("asking", cohort="left", rules=LOWER_HERE_RECLAIM_ANY, cpu=0),
        cluster_queue("other", cohort="right", cpu=0),
        cluster_queue("loose", cohort="root", cpu=0),
        runs("theirs", "other", priority=-9, cpu=3),
        runs("loose", "loose", cpu=3),
    )
    assert yielding(world, "asking", cpu=2) == {"loose": RECLAIMED}


def test_a_department_that_is_whole_again_is_passed_over() -> None:
    """After `a1` the right side uses its own three cores only, whichever of its queues uses them."""
    world = queues(
        cohort("root"),
        cohort("left", parent="root", cpu=4),
        cohort("right", parent="root", cpu=3),
        cluster_queue("asking", cohort="left", rules=LOWER_HERE_RECLAIM_ANY, cpu=0),
        cluster_queue("a", cohort="right", cpu=0),
        cluster_queue("b", cohort="right", cpu=0),
        cluster_queue("loose", cohort="root", cpu=0),
        runs("a1", "a", priority=-3, cpu=2),
        runs("b1", "b", priority=-2, cpu=3),
        runs("loose", "loose", priority=9, cpu=2),
    )
    assert yielding(world, "asking", cpu=3) == {"a1": RECLAIMED, "loose": RECLAIMED}


def test_quota_kept_from_lending_is_used_before_the_parent_is_asked() -> None:
    """Three cores of the department stay in it, so its right is judged by the one core that remains."""
    world = queues(
        cohort("root", cpu=2),
        cohort("department", parent="root", cpu=limited(4, lend=1)),
        cluster_queue("asking", cohort="department", rules=LOWER_HERE_RECLAIM_ANY, cpu=0),
        cluster_queue("outsider", cohort="root", cpu=0),
        runs("out", "outsider", priority=5, cpu=3),
    )
    assert yielding(world, "asking", cpu=4) == {"out": RECLAIMED}
    assert yielding(world, "asking", cpu=6) == {}


def test_the_root_quota_counts_as_everybodys() -> None:
    """No subtree below the root holds five cores, so nobody stands in the way of a right; priority decides."""
    both = [runs("high", "outsider", priority=1, cpu=2), runs("low", "outsider", priority=-1, cpu=2)]
    assert yielding(firm(*both, rules=THRESHOLD_0), "asking", cpu=5) == {}
    assert yielding(firm(both[1], rules=THRESHOLD_0), "asking", cpu=5) == {"low": WHILE_BORROWING}


def test_the_right_counts_all_that_is_asked_for_and_not_only_what_is_short() -> None:
    world = queues(
        cohort("root", memory=9),
        cohort("department", parent="root", cpu=2, memory=1),
        cluster_queue("asking", cohort="department", rules=LOWER_HERE_RECLAIM_ANY, cpu=0, memory=0),
        cluster_queue("outsider", cohort="root", cpu=0, memory=0),
        runs("out", "outsider", priority=-5, cpu=2),
    )
    assert yielding(world, "asking", cpu=2, memory=1) == {"out": RECLAIMED}
    assert yielding(world, "asking", cpu=2, memory=2) == {}


@pytest.mark.parametrize("depth", [1, 4])
def test_depth_alone_changes_nothing(depth: int) -> None:
    chain = [cohort(f"c{level}", parent=f"c{level + 1}") for level in range(depth)]
    world = queues(
        *chain,
        cohort(f"c{depth}"),
        cluster_queue("asking", cohort="c0", rules=LOWER_HERE_RECLAIM_ANY, cpu=3),
        cluster_queue("far", cohort=f"c{depth}", cpu=0),
        runs("out", "far", priority=5, cpu=3),
    )
    assert yielding(world, "asking", cpu=2) == {"out": RECLAIMED}


def test_a_right_to_quota_far_below_is_not_lost_farther_up() -> None:
    """The department holds the core; that its division is full of others' work does not turn the right into a wish."""
    rules = PreemptionRules(reclaim="LowerPriority")
    world = queues(
        cohort("root", cpu=2),
        cohort("division", parent="root"),
        cohort("department", parent="division", cpu=4),
        cluster_queue("asking", cohort="department", rules=rules, cpu=0),
        cluster_queue("near", cohort="division", cpu=0),
        cluster_queue("far", cohort="root", cpu=0),
        runs("near", "near", priority=9, cpu=4),
        runs("far", "far", priority=-1, cpu=2),
    )
    assert yielding(world, "asking", cpu=1) == {"far": RECLAIMED}


def test_what_a_queue_keeps_from_lending_is_not_asked_of_its_department() -> None:
    """Two of four cores are the queue's alone; the other two are what its department holds."""
    world = queues(
        cohort("root"),
        cohort("department", parent="root", cpu=1),
        cluster_queue("asking", cohort="department", rules=LOWER_HERE_RECLAIM_ANY, cpu=limited(3, lend=1)),
        cluster_queue("outsider", cohort="root", cpu=0),
        runs("out", "outsider", priority=5, cpu=2),
    )
    assert yielding(world, "asking", cpu=4) == {"out": RECLAIMED}
