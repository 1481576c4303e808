"""`borrowWithinCohort`: who yields to a workload that will itself be borrowing."""

from __future__ import annotations

from build.asking import HERE, RECLAIMED, WHILE_BORROWING, runs, yielding
from build.queues import cluster_queue, limited, queues
from shoal.engine.queues.facts import PreemptionRules, WorkloadFacts
from shoal.engine.queues.state import Queues


def shared(*workloads: WorkloadFacts, threshold: int | None = 0, within: bool = False) -> Queues:
    """`standard` may preempt while it borrows from `shared`, whoever is not above the threshold."""
    rules = PreemptionRules("LowerPriority" if within else "Never", "LowerPriority", "LowerPriority", threshold)
    return queues(
        cluster_queue("standard", cohort="all", rules=rules, cpu=limited(1, borrow=12)),
        cluster_queue("effort", cohort="all", cpu=limited(1, borrow=12)),
        cluster_queue("shared", cohort="all", cpu=10),
        *workloads,
    )


def test_a_borrower_takes_from_a_lower_borrower_where_that_is_allowed() -> None:
    world = shared(runs("low", "effort", priority=-1, cpu=10))
    assert yielding(world, "standard", cpu=10) == {"low": WHILE_BORROWING}


def test_above_the_threshold_nobody_yields_to_a_borrower() -> None:
    world = shared(runs("mid", "effort", priority=1, cpu=10))
    assert yielding(world, "standard", priority=2, cpu=10) == {}


def test_at_the_threshold_one_yields_to_a_borrower() -> None:
    assert yielding(shared(runs("at", "effort", cpu=10)), "standard", priority=2, cpu=10) == {"at": WHILE_BORROWING}


def test_without_a_threshold_every_lower_one_yields_to_a_borrower() -> None:
    world = shared(runs("mid", "effort", priority=1, cpu=10), threshold=None)
    assert yielding(world, "standard", priority=2, cpu=10) == {"mid": WHILE_BORROWING}


def test_above_the_threshold_one_yields_to_who_ends_within_its_quota() -> None:
    world = shared(runs("mid", "effort", priority=1, cpu=12))
    assert yielding(world, "standard", priority=2, cpu=1) == {"mid": RECLAIMED}


def test_others_below_the_threshold_and_own_ones_yield_together() -> None:
    world = shared(
        runs("own", "standard", priority=1, cpu=1),
        runs("lower", "effort", priority=-2, cpu=1),
        runs("low", "effort", priority=-1, cpu=1),
        runs("keeps", "effort", priority=2, cpu=9),
        within=True,
    )
    assert yielding(world, "standard", priority=2, cpu=2) == {"lower": WHILE_BORROWING, "low": WHILE_BORROWING}


def test_above_the_threshold_one_yields_only_together_with_what_makes_the_queue_borrow() -> None:
    world = shared(
        runs("own", "standard", priority=-1, cpu=0.5), runs("mid", "effort", priority=1, cpu=11.5), within=True
    )
    assert yielding(world, "standard", priority=2, cpu=1) == {"mid": RECLAIMED, "own": HERE}


def test_an_equal_does_not_yield_to_a_borrower_whatever_may_be_reclaimed() -> None:
    rules = PreemptionRules(reclaim="Any", borrow="LowerPriority")
    world = queues(
        cluster_queue("mine", cohort="all", rules=rules, cpu=1),
        cluster_queue("theirs", cohort="all", cpu=1),
        cluster_queue("shared", cohort="all", cpu=2),
        runs("equal", "theirs", cpu=4),
    )
    assert yielding(world, "mine", cpu=2) == {}
    assert yielding(world, "mine", priority=1, cpu=2) == {"equal": WHILE_BORROWING}
