"""Classical preemption in flat cohorts and alone: who yields to whom, and who never does."""

from __future__ import annotations

import pytest

from build.asking import (
    HERE,
    LOWER_HERE,
    LOWER_HERE_RECLAIM_ANY,
    NEVER,
    RECLAIM_ANY,
    RECLAIM_LOWER,
    RECLAIMED,
    named,
    runs,
    search,
    want_of,
    yielding,
)
from build.queues import cluster_queue, flavor, limited, queues, quotas
from shoal.engine.queues.facts import PreemptionRules, WorkloadFacts
from shoal.engine.queues.state import Queues

BOTH = PreemptionRules(within="LowerPriority", reclaim="LowerPriority")
NEWER_TOO = PreemptionRules(within="LowerOrNewerEqualPriority")


def alone(*workloads: WorkloadFacts, rules: PreemptionRules = LOWER_HERE) -> Queues:
    return queues(cluster_queue("alone", rules=rules, cpu=6), *workloads)


def pair(*workloads: WorkloadFacts, rules: PreemptionRules = BOTH) -> Queues:
    """Two queues of six cores each that may borrow the other's; only `mine` may preempt."""
    return queues(
        cluster_queue("mine", cohort="all", rules=rules, cpu=limited(6, borrow=6), memory=limited(3, borrow=3)),
        cluster_queue("theirs", cohort="all", rules=NEVER, cpu=limited(6, borrow=6), memory=limited(3, borrow=3)),
        *workloads,
    )


def test_the_lowest_priority_yields() -> None:
    world = alone(
        runs("low", "alone", priority=-1, cpu=2), runs("mid", "alone", cpu=2), runs("high", "alone", priority=1, cpu=2)
    )
    assert yielding(world, "alone", priority=1, cpu=2) == {"low": HERE}


def test_as_many_yield_as_it_takes() -> None:
    world = alone(
        runs("low", "alone", priority=-1, cpu=2), runs("mid", "alone", cpu=2), runs("high", "alone", priority=1, cpu=2)
    )
    assert yielding(world, "alone", priority=1, cpu=3) == {"low": HERE, "mid": HERE}


def test_nobody_yields_to_an_equal() -> None:
    world = alone(runs("a", "alone", cpu=3), runs("b", "alone", cpu=3))
    assert yielding(world, "alone", cpu=1) == {}


def test_nobody_yields_in_vain() -> None:
    world = alone(runs("low", "alone", priority=-1, cpu=3), runs("mid", "alone", cpu=3))
    assert yielding(world, "alone", cpu=4) == {}


def test_free_quota_counts() -> None:
    world = alone(runs("low", "alone", priority=-1, cpu=1), runs("mid", "alone", cpu=3))
    assert yielding(world, "alone", priority=1, cpu=2 + 1) == {"low": HERE}


def test_a_small_one_taken_first_is_spared_when_a_bigger_one_suffices() -> None:
    world = alone(
        runs("small", "alone", priority=-1, cpu=1), runs("big", "alone", cpu=3), runs("x", "alone", priority=9, cpu=2)
    )
    assert yielding(world, "alone", priority=5, cpu=3) == {"big": HERE}


def test_who_uses_another_flavor_is_left_alone() -> None:
    world = queues(
        cluster_queue("alone", quotas("alpha", cpu=3), quotas("beta", cpu=3), rules=LOWER_HERE),
        runs("in-alpha", "alone", "alpha", priority=-1, cpu=2),
        runs("in-beta", "alone", "beta", priority=-1, cpu=2),
    )
    assert yielding(world, "alone", flavor="beta", cpu=2) == {"in-beta": HERE}


def test_a_policy_of_never_spares_the_own_queue() -> None:
    assert yielding(alone(runs("low", "alone", priority=-9, cpu=6), rules=NEVER), "alone", cpu=1) == {}


@pytest.mark.parametrize(
    ("stamp_s", "expected"),
    [(5.0, {"newer": HERE}), (10.0, {}), (11.0, {})],
    ids=["older than one of them", "as old as the newest", "newer than all"],
)
def test_among_equals_the_newer_yields(stamp_s: float, expected: dict[str, str]) -> None:
    world = alone(
        runs("older", "alone", created=1, at=20, cpu=3),
        runs("newer", "alone", created=10, at=15, cpu=3),
        rules=NEWER_TOO,
    )
    assert yielding(world, "alone", stamp_s=stamp_s, cpu=2) == expected


def test_own_quota_is_taken_back_from_a_borrower() -> None:
    world = pair(
        runs("mine-low", "mine", priority=-1, cpu=3),
        runs("theirs-mid", "theirs", cpu=3),
        runs("theirs-high", "theirs", priority=1, cpu=6),
    )
    assert yielding(world, "mine", priority=1, cpu=3) == {"theirs-mid": RECLAIMED}


def test_who_stays_within_quota_never_yields_to_another_queue() -> None:
    world = pair(runs("mine-high", "mine", priority=9, cpu=6), runs("theirs-low", "theirs", priority=-9, cpu=6))
    assert yielding(world, "mine", priority=1, cpu=3) == {}


def test_a_lender_that_is_whole_again_is_passed_over() -> None:
    """One of two borrowed cores comes back; then the queue is within its quota, though more of it could go."""
    world = queues(
        cluster_queue("mine", cohort="all", rules=LOWER_HERE_RECLAIM_ANY, cpu=6),
        cluster_queue("theirs", cohort="all", cpu=2),
        runs("own", "mine", priority=-1, cpu=4),
        runs("first", "theirs", priority=-5, cpu=3),
        runs("second", "theirs", priority=-5, at=-1, cpu=1),
    )
    assert yielding(world, "mine", cpu=6) == {"first": RECLAIMED, "own": HERE}


@pytest.mark.parametrize(
    ("rules", "expected"), [(RECLAIM_LOWER, {}), (RECLAIM_ANY, {"equal": RECLAIMED})], ids=["LowerPriority", "Any"]
)
def test_an_equal_gives_back_only_where_any_is_reclaimed(rules: PreemptionRules, expected: dict[str, str]) -> None:
    world = pair(runs("equal", "theirs", cpu=8), rules=rules)
    assert yielding(world, "mine", cpu=5) == expected


def test_a_queue_that_borrows_takes_from_itself_and_goes_on_borrowing() -> None:
    world = pair(
        runs("med", "mine", cpu=4),
        runs("low", "mine", priority=-1, cpu=4),
        runs("their-low", "theirs", priority=-1, cpu=4),
    )
    assert yielding(world, "mine", priority=1, cpu=4) == {"low": HERE}


def test_borrowing_of_another_resource_leaves_only_own_victims() -> None:
    """Memory beyond the own quota is borrowed, so nothing may be reclaimed, not even cores."""
    world = pair(runs("med", "mine", cpu=4), runs("their-low", "theirs", priority=-1, cpu=8))
    want = want_of(
        world,
        "mine",
        {("default", "cpu"): 2000, ("default", "memory"): 5},
        priority=1,
        needs=frozenset({("default", "cpu")}),
    )
    assert named(search(world, want)) == {"med": HERE}


def test_reclaiming_ends_within_the_own_quota_before_borrowing_is_tried() -> None:
    """Under quota, but only by ending own work can both fit: the borrower gives back and own work yields too."""
    world = pair(runs("low", "mine", priority=-1, cpu=3), runs("their-low", "theirs", priority=-1, cpu=9))
    assert yielding(world, "mine", priority=1, cpu=4) == {"their-low": RECLAIMED, "low": HERE}


def test_a_resource_of_which_nothing_is_asked_hinders_nobody() -> None:
    world = pair(runs("full", "mine", priority=9, memory=3), runs("their-low", "theirs", priority=-1, cpu=9))
    want = want_of(
        world,
        "mine",
        {("default", "cpu"): 4000, ("default", "memory"): 0},
        priority=1,
        needs=frozenset({("default", "cpu")}),
    )
    assert named(search(world, want)) == {"their-low": RECLAIMED}


def test_lending_limits_bound_what_can_be_reclaimed() -> None:
    world = queues(
        cluster_queue("mine", cohort="all", rules=RECLAIM_ANY, cpu=4),
        cluster_queue("theirs", cohort="all", cpu=limited(6, lend=1)),
        runs("big", "theirs", cpu=8),
    )
    assert yielding(world, "mine", cpu=4) == {"big": RECLAIMED}
    assert yielding(world, "mine", cpu=6) == {}


def test_every_short_resource_is_freed_by_those_who_use_it() -> None:
    world = queues(
        flavor("tall"),
        cluster_queue("alone", rules=LOWER_HERE, cpu=4, memory=4),
        runs("cores", "alone", priority=-1, cpu=3),
        runs("bytes", "alone", priority=-2, memory=3),
        runs("little", "alone", priority=-3, cpu=1, memory=1),
    )
    assert yielding(world, "alone", cpu=3, memory=3) == {"cores": HERE, "bytes": HERE}


def test_nothing_asked_of_a_resource_in_debt_is_no_hindrance() -> None:
    """More memory is used than there is since quota was cut; who asks for none is not concerned."""
    world = queues(
        cluster_queue("alone", rules=LOWER_HERE, cpu=2, memory=1),
        runs("debt", "alone", priority=9, memory=3),
        runs("low", "alone", priority=-1, cpu=2),
    )
    want = want_of(
        world,
        "alone",
        {("default", "cpu"): 1000, ("default", "memory"): 0},
        needs=frozenset({("default", "cpu")}),
    )
    assert named(search(world, want)) == {"low": HERE}


def test_reclaiming_is_tried_before_more_of_the_own_work_yields_to_borrow() -> None:
    """The big one alone would make room too, if borrowing were tried first."""
    world = pair(
        runs("small", "mine", priority=-2, cpu=1),
        runs("big", "mine", priority=-1, cpu=4),
        runs("borrower", "theirs", priority=-1, cpu=1),
        runs("theirs", "theirs", priority=9, cpu=6),
    )
    assert yielding(world, "mine", cpu=2) == {"borrower": RECLAIMED, "small": HERE}


def test_own_work_is_not_spared_into_borrowing() -> None:
    """There is room for the small one in the cohort, but reclaiming must end within the own quota."""
    world = pair(
        runs("small", "mine", priority=-2, cpu=1),
        runs("big", "mine", priority=-1, cpu=4),
        runs("borrower", "theirs", priority=-1, cpu=7),
    )
    assert yielding(world, "mine", cpu=5.5) == {"borrower": RECLAIMED, "small": HERE, "big": HERE}


def test_where_nobody_else_borrows_own_work_yields_as_little_as_borrowing_needs() -> None:
    world = pair(
        runs("small", "mine", priority=-2, cpu=0.5),
        runs("big", "mine", priority=-1, cpu=4.5),
        runs("theirs", "theirs", priority=-9, cpu=5.5),
    )
    assert yielding(world, "mine", cpu=2) == {"small": HERE}


def test_a_queue_whose_quota_is_used_up_reclaims_nothing() -> None:
    """The cohort is in debt by one core, so that reclaiming would have spared own work."""
    world = queues(
        cluster_queue("mine", cohort="all", rules=BOTH, cpu=6),
        cluster_queue("theirs", cohort="all", cpu=6),
        runs("small", "mine", priority=-2, cpu=2),
        runs("big", "mine", priority=-1, cpu=4),
        runs("borrower", "theirs", priority=-1, cpu=1),
        runs("theirs", "theirs", priority=9, cpu=6),
    )
    assert yielding(world, "mine", cpu=2) == {"big": HERE}
