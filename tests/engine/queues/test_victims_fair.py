"""Preemption under fair sharing: those above their share give to those below, wherever they are in the tree."""

from __future__ import annotations

import pytest

from build.asking import (
    FAIR,
    HERE,
    LOWER_HERE_RECLAIM_ANY,
    RECLAIM_ANY,
    RECLAIMED,
    runs,
    yielding,
)
from build.queues import cluster_queue, cohort, queues, quotas
from shoal.engine.queues.facts import PreemptionRules, WorkloadFacts
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues

FAIRLY = Settings(fair_sharing=True)
FINAL_ONLY = Settings(fair_sharing=True, fair_strategies=("LessThanOrEqualToFinalShare",))
INITIAL_ONLY = Settings(fair_sharing=True, fair_strategies=("LessThanInitialShare",))
WITH_BORROWING = PreemptionRules("LowerPriority", "Any", "LowerPriority", -3)


def three(*workloads: WorkloadFacts, settings: Settings = FAIRLY) -> Queues:
    """Three queues of three cores each, and one that has none of its own."""
    return queues(
        *(cluster_queue(name, cohort="all", rules=WITH_BORROWING, cpu=3) for name in "abc"),
        cluster_queue("guest", cohort="all", cpu=0),
        *workloads,
        settings=settings,
    )


def ones(queue: str, count: int, *, priority: int = 0, first: int = 1) -> list[WorkloadFacts]:
    """Workloads of one core each, a1, a2, ..."""
    return [runs(f"{queue}{index}", queue, priority=priority, cpu=1) for index in range(first, first + count)]


# Quota of one's own


def test_own_quota_comes_back_from_who_borrows_most() -> None:
    world = three(*ones("a", 1), *ones("b", 2), *ones("c", 5), *ones("guest", 1))
    assert yielding(world, "a", cpu=1) == {"c1": RECLAIMED}


def test_several_borrowers_come_down_together() -> None:
    world = three(*ones("b", 5), *ones("c", 4))
    assert yielding(world, "a", cpu=2) == {"b1": RECLAIMED, "b2": RECLAIMED}
    assert yielding(world, "a", cpu=3) == {"b1": RECLAIMED, "b2": RECLAIMED, "c1": RECLAIMED}


def test_nobody_loses_own_quota() -> None:
    world = three(*ones("a", 3), *ones("b", 3), *ones("c", 3))
    assert yielding(world, "a", cpu=1) == {}


def test_borrowing_of_another_flavor_does_not_cost_the_right_to_the_own_quota() -> None:
    """`a` has a large share through the spot flavor, and still gets its reserved cores back."""
    world = queues(
        cluster_queue("a", quotas("spot", cpu=0), quotas("firm", cpu=2), cohort="all", rules=RECLAIM_ANY),
        cluster_queue("b", quotas("spot", cpu=9), quotas("firm", cpu=2), cohort="all"),
        runs("a1", "a", "spot", cpu=8),
        runs("b1", "b", "firm", cpu=4),
        settings=FAIRLY,
    )
    assert yielding(world, "a", flavor="firm", cpu=2) == {"b1": RECLAIMED}
    assert yielding(world, "a", flavor="firm", cpu=3) == {}


# Shares


def test_who_borrows_most_gives_to_who_borrows_less() -> None:
    world = three(*ones("a", 3), *ones("b", 5), *ones("c", 1))
    assert yielding(world, "a", cpu=1) == {"b1": FAIR}


def test_equal_shares_stay_as_they_are() -> None:
    world = three(*ones("a", 4), *ones("b", 5))
    assert yielding(world, "a", cpu=1) == {}


def test_own_lower_workloads_yield_without_comparison() -> None:
    world = three(*ones("a", 1, priority=-1), *ones("a", 2, first=2), *ones("b", 6))
    assert yielding(world, "a", cpu=2) == {"a1": HERE, "b1": FAIR}


def test_the_workload_that_leaves_the_other_side_with_enough_yields() -> None:
    """Without a two-core workload `b` would have less than `a` then has; without the one-core workload it has more."""
    world = three(runs("b1", "b", cpu=2), runs("b2", "b", cpu=1), runs("b3", "b", cpu=2), runs("c1", "c", cpu=1))
    assert yielding(world, "a", cpu=3.5) == {"b2": FAIR}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(FINAL_ONLY, {}), (INITIAL_ONLY, {"b-low": FAIR}), (FAIRLY, {"b-low": FAIR})],
    ids=["by the share afterwards", "by the share before", "by both"],
)
def test_a_big_workload_yields_only_where_the_share_before_counts(settings: Settings, expected: dict[str, str]) -> None:
    """`b` would have less than `a` afterwards, though it has more now."""
    world = three(runs("a1", "a", cpu=3), runs("b-low", "b", cpu=6), settings=settings)
    assert yielding(world, "a", cpu=1) == expected


def test_by_the_share_before_a_queue_gives_one_workload_only() -> None:
    world = three(*ones("a", 3), runs("b1", "b", cpu=3), runs("b2", "b", cpu=3))
    assert yielding(world, "a", cpu=2) == {"b1": FAIR}


@pytest.mark.parametrize("settings", [INITIAL_ONLY, FAIRLY])
def test_by_the_share_before_an_equal_gives_nothing(settings: Settings) -> None:
    halves = three(*ones("a", 4), runs("b1", "b", cpu=2.5), runs("b2", "b", cpu=2.5), settings=settings)
    assert yielding(halves, "a", cpu=1) == {}


def test_the_lower_priority_of_a_queue_goes_first_though_it_is_big() -> None:
    world = three(
        runs("a1", "a", cpu=3), runs("low", "b", cpu=5), runs("high", "b", priority=1, cpu=1), settings=INITIAL_ONLY
    )
    assert yielding(world, "a", cpu=1) == {"low": FAIR}


def test_among_equal_queues_the_one_whose_workload_is_asked_first_gives() -> None:
    even = [*ones("a", 1), *ones("b", 3)]
    assert yielding(three(*even, *ones("b", 1, first=4), *ones("c", 4)), "a", cpu=1) == {"b1": RECLAIMED}
    newer = runs("c-new", "c", at=5, cpu=1)
    assert yielding(three(*even, *ones("b", 1, first=4), *ones("c", 3), newer), "a", cpu=1) == {"c-new": RECLAIMED}
    lower = runs("c-low", "c", priority=-1, cpu=1)
    newest = runs("b-new", "b", at=9, cpu=1)
    assert yielding(three(*even, newest, *ones("c", 3), lower), "a", cpu=1) == {"c-low": RECLAIMED}


def test_a_cohort_is_searched_before_a_queue_of_the_same_share() -> None:
    world = queues(
        cohort("root", cpu=2),
        cohort("inner", parent="root"),
        cluster_queue("a", cohort="root", rules=RECLAIM_ANY, cpu=1),
        cluster_queue("b", cohort="root", cpu=0),
        cluster_queue("z", cohort="inner", cpu=0),
        runs("b1", "b", priority=-9, cpu=1.5),
        runs("z1", "z", priority=9, cpu=1.5),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=1) == {"z1": RECLAIMED}


def test_the_reclaim_policy_still_says_who_may_be_asked() -> None:
    rules = PreemptionRules(reclaim="LowerPriority")
    facts = [cluster_queue("a", cohort="all", rules=rules, cpu=3), cluster_queue("b", cohort="all", cpu=3)]
    world = queues(*facts, runs("equal", "b", cpu=5), runs("lower", "b", priority=-1, cpu=1), settings=FAIRLY)
    assert yielding(world, "a", cpu=1) == {"lower": RECLAIMED}
    assert yielding(world, "a", cpu=2) == {}


def test_a_queue_without_cohort_asks_only_itself() -> None:
    world = queues(cluster_queue("a", rules=LOWER_HERE_RECLAIM_ANY, cpu=3), *ones("a", 3, priority=-1), settings=FAIRLY)
    assert yielding(world, "a", cpu=2) == {"a1": HERE, "a2": HERE}


def test_who_borrows_only_something_else_is_not_asked() -> None:
    """`b` has a share through memory, and uses no more cores than it has."""
    world = queues(
        cluster_queue("a", cohort="all", rules=RECLAIM_ANY, cpu=3, memory=3),
        cluster_queue("b", cohort="all", cpu=3, memory=3),
        cluster_queue("c", cohort="all", cpu=0, memory=0),
        runs("b1", "b", cpu=3, memory=6),
        *ones("c", 3),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=3) == {"c1": RECLAIMED, "c2": RECLAIMED, "c3": RECLAIMED}


def test_a_queue_that_borrows_nothing_still_finds_its_own_victims() -> None:
    world = queues(
        cluster_queue("a", cohort="all", rules=PreemptionRules(within="LowerPriority"), cpu=3),
        cluster_queue("b", cohort="all", cpu=6),
        runs("low", "a", priority=-1, cpu=1),
        *ones("b", 8),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=1) == {"low": HERE}
