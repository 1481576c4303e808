"""Fair sharing with weights, and through cohorts of cohorts."""

from __future__ import annotations

import pytest

from build.asking import FAIR, RECLAIM_ANY, RECLAIMED, named, runs, search, want_of, yielding
from build.queues import amount_of, cluster_queue, cohort, queues
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.settings import Settings

FAIRLY = Settings(fair_sharing=True)
FINAL_ONLY = Settings(fair_sharing=True, fair_strategies=("LessThanOrEqualToFinalShare",))


def ones(queue: str, count: int, *, priority: int = 0, first: int = 1) -> list[WorkloadFacts]:
    """Workloads of one core each, a1, a2, ..."""
    return [runs(f"{queue}{index}", queue, priority=priority, cpu=1) for index in range(first, first + count)]


@pytest.mark.parametrize(("weight", "expected"), [(1.0, {"b1": FAIR}), (2.0, {"b1": FAIR}), (3.0, {})])
def test_weight_makes_a_share_smaller(weight: float, expected: dict[str, str]) -> None:
    """`a` would borrow one core and leave `b` with two, which with weight three is less."""
    world = queues(
        cluster_queue("a", cohort="all", rules=RECLAIM_ANY, cpu=3),
        cluster_queue("b", cohort="all", cpu=3, weight=weight),
        cluster_queue("c", cohort="all", cpu=3),
        *ones("a", 3),
        *ones("b", 6),
        settings=FINAL_ONLY,
    )
    assert yielding(world, "a", cpu=1) == expected


def test_without_weight_one_gives_to_whoever_has_some() -> None:
    world = queues(
        cohort("all", cpu=3),
        cluster_queue("a", cohort="all", rules=RECLAIM_ANY, cpu=0),
        cluster_queue("b", cohort="all", cpu=0, weight=0),
        *ones("b", 3),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=3) == {"b1": FAIR, "b2": FAIR, "b3": FAIR}


def test_without_weight_on_either_side_what_is_borrowed_counts() -> None:
    world = queues(
        cohort("all", cpu=3),
        cluster_queue("a", cohort="all", rules=RECLAIM_ANY, cpu=1, weight=0),
        cluster_queue("b", cohort="all", cpu=0, weight=0),
        *ones("b", 3),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=2) == {"b1": FAIR}


def test_without_weight_own_quota_is_safe() -> None:
    world = queues(
        cohort("root"),
        cohort("right", parent="root", cpu=1, weight=0),
        cluster_queue("left", cohort="root", rules=RECLAIM_ANY, cpu=0),
        cluster_queue("inner", cohort="right", cpu=0, weight=0),
        *ones("inner", 1),
        settings=FAIRLY,
    )
    assert yielding(world, "left", cpu=1) == {}


# Trees


def test_shares_are_compared_where_the_ways_part() -> None:
    """`a` itself borrows more than `b` does, but its side of the tree less than the other side."""
    world = queues(
        cohort("root", cpu=10),
        cohort("left", parent="root"),
        cohort("right", parent="root"),
        cluster_queue("a", cohort="left", rules=RECLAIM_ANY, cpu=0),
        *(cluster_queue(name, cohort="right", cpu=0) for name in ("b", "c")),
        *ones("a", 4),
        *ones("b", 3),
        *ones("c", 3),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=1) == {"b1": FAIR}


def test_an_even_side_is_left_alone_whoever_borrows_in_it() -> None:
    world = queues(
        cohort("root"),
        cohort("left", parent="root", cpu=3),
        cohort("right", parent="root", cpu=3),
        cluster_queue("a", cohort="left", rules=RECLAIM_ANY, cpu=0),
        cluster_queue("b", cohort="right", cpu=0),
        *ones("a", 3),
        *ones("b", 3),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=1) == {}


def test_the_own_side_is_searched_though_it_borrows_nothing() -> None:
    world = queues(
        cohort("root"),
        cohort("left", parent="root", cpu=4),
        cluster_queue("a", cohort="left", rules=RECLAIM_ANY, cpu=0),
        cluster_queue("b", cohort="left", cpu=0),
        cluster_queue("far", cohort="root", cpu=3),
        *ones("b", 4),
        *ones("far", 3),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=2) == {"b1": FAIR, "b2": FAIR}


@pytest.mark.parametrize(("mine", "theirs", "expected"), [(1.01, 0.99, {"b1": FAIR}), (0.99, 1.01, {})])
def test_weights_of_cohorts_far_above_decide(mine: float, theirs: float, expected: dict[str, str]) -> None:
    world = queues(
        cohort("root", cpu=1),
        cohort("left", parent="root", weight=mine),
        cohort("left-2", parent="left"),
        cohort("right", parent="root", weight=theirs),
        cohort("right-2", parent="right"),
        cluster_queue("a", cohort="left-2", rules=RECLAIM_ANY, cpu=0),
        cluster_queue("b", cohort="right-2", cpu=0),
        *ones("b", 1),
        settings=FAIRLY,
    )
    assert yielding(world, "a", cpu=1) == expected


def test_a_resource_that_nobody_used_before_leaves_no_trace() -> None:
    world = queues(
        cluster_queue("a", cohort="all", rules=RECLAIM_ANY, cpu=3, memory=3),
        cluster_queue("b", cohort="all", cpu=3, memory=3),
        *ones("b", 6),
        settings=FAIRLY,
    )
    usage = {("default", "cpu"): amount_of("cpu", 1), ("default", "memory"): 1}
    assert named(search(world, want_of(world, "a", usage, needs=frozenset({("default", "cpu")})))) == {"b1": RECLAIMED}
