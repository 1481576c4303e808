"""Dominant resource share: who has borrowed how much of what can be lent, and how weights change the comparison."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.queues import cluster_queue, cohort, hold_usage, limited, queues, quotas
from shoal.engine.queues.shares import MOST, WeightedShare, less, share_of
from shoal.engine.queues.state import Queues

CHIPS = ("default", "chips")


def pool() -> Queues:
    """A queue `mine` of 2 cores and 5 chips beside one of 8 cores and 5 chips."""
    return queues(
        cluster_queue("mine", cohort="all", cpu=2, chips=5),
        cluster_queue("other", cohort="all", cpu=8, chips=5),
    )


def test_nobody_has_a_share_of_what_is_their_own() -> None:
    world = pool()
    hold_usage(world, "mine", cpu=2, chips=5)
    assert share_of(world.cluster_queues["mine"]) == WeightedShare(0.0, 1.0, "", borrows=False)


def test_the_scarcest_resource_counts() -> None:
    world = pool()
    hold_usage(world, "mine", cpu=3, chips=7)
    share = share_of(world.cluster_queues["mine"])
    assert (share.weighted, share.dominant, share.borrows) == (200, "chips", True)


def test_of_equal_resources_the_first_by_name_is_named() -> None:
    world = queues(cluster_queue("mine", cohort="all", b=0, a=0), cluster_queue("other", cohort="all", b=4, a=4))
    hold_usage(world, "mine", b=1, a=1)
    assert share_of(world.cluster_queues["mine"]).dominant == "a"


def test_a_request_counts_as_if_it_were_used() -> None:
    world = pool()
    hold_usage(world, "mine", chips=5)
    mine = world.cluster_queues["mine"]
    asked = share_of(mine, {CHIPS: 3})
    hold_usage(world, "mine", chips=3)
    assert asked == share_of(mine)
    assert asked.weighted == 300


def test_flavors_of_one_resource_add_up_on_both_sides() -> None:
    world = queues(
        cluster_queue("mine", quotas("spot", chips=1), quotas("demand", chips=1), cohort="all"),
        cluster_queue("other", quotas("spot", chips=9), quotas("demand", chips=9), cohort="all"),
    )
    hold_usage(world, "mine", "spot", chips=2)
    hold_usage(world, "mine", "demand", chips=4)
    assert share_of(world.cluster_queues["mine"]).ratio == 4 * 1000 / 20


def test_use_below_quota_in_one_flavor_does_not_pay_for_another() -> None:
    world = queues(
        cluster_queue("mine", quotas("spot", chips=5), quotas("demand", chips=0), cohort="all"),
        cluster_queue("other", quotas("demand", chips=5), cohort="all"),
    )
    hold_usage(world, "mine", "demand", chips=2)
    assert share_of(world.cluster_queues["mine"]).weighted == 200


def test_what_nobody_lends_has_no_share_and_is_borrowed_all_the_same() -> None:
    world = queues(
        cluster_queue("mine", cohort="all", chips=limited(2, lend=0)),
        cluster_queue("other", cohort="all", chips=limited(64, lend=0)),
    )
    hold_usage(world, "mine", chips=3)
    assert share_of(world.cluster_queues["mine"]) == WeightedShare(0.0, 1.0, "", borrows=True)


def test_a_cohort_has_a_share_and_the_root_has_none() -> None:
    world = queues(
        cohort("root", chips=45),
        cohort("child", parent="root", weight=2.0),
        cluster_queue("q", cohort="child", chips=5),
    )
    hold_usage(world, "q", chips=10)
    assert [share_of(node).weighted for node in (world.cluster_queues["q"], *world.cohorts.values())] == [100, 50, 0]


def test_a_limit_between_cohorts_makes_the_share_of_those_below_greater() -> None:
    def share(borrow: int | None) -> int:
        world = queues(
            cohort("root", chips=90),
            cohort("child", parent="root", chips=limited(0, borrow=borrow)),
            cluster_queue("q", cohort="child", chips=10),
        )
        hold_usage(world, "q", chips=20)
        return share_of(world.cluster_queues["q"]).weighted

    assert (share(None), share(10)) == (100, 500)


def test_a_queue_without_cohort_has_no_share() -> None:
    world = queues(cluster_queue("alone", chips=1))
    hold_usage(world, "alone", chips=5)
    assert not share_of(world.cluster_queues["alone"]).borrows


@pytest.mark.parametrize(("weight", "weighted"), [(1.0, 334), (2.0, 167), (0.5, 667), (0.0, MOST)])
def test_weights_divide_and_the_status_rounds_up(weight: float, weighted: int) -> None:
    world = queues(
        cluster_queue("mine", cohort="all", weight=weight, chips=0), cluster_queue("o", cohort="all", chips=3)
    )
    hold_usage(world, "mine", chips=1)
    assert share_of(world.cluster_queues["mine"]).weighted == weighted


@pytest.mark.parametrize(
    ("smaller", "greater"),
    [
        (WeightedShare(100, 1, "a", borrows=True), WeightedShare(101, 1, "a", borrows=True)),
        (WeightedShare(300, 3, "a", borrows=True), WeightedShare(101, 1, "a", borrows=True)),
        (WeightedShare(900, 0.1, "a", borrows=True), WeightedShare(1, 0, "a", borrows=True)),
        (WeightedShare(1, 0, "a", borrows=True), WeightedShare(2, 0, "a", borrows=True)),
        (WeightedShare(0, 0, "", borrows=False), WeightedShare(1, 1, "a", borrows=True)),
    ],
)
def test_with_weight_zero_who_borrows_has_more_than_all_others(smaller: WeightedShare, greater: WeightedShare) -> None:
    assert less(smaller, greater)
    assert not less(greater, smaller)
    assert not less(greater, greater)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=2, max_size=5), st.sampled_from([1, 2, 4]))
def test_shares_are_what_is_borrowed_of_what_is_there(members: list[tuple[int, int]], weight: int) -> None:
    facts = [
        cluster_queue(f"q{index}", cohort="all", weight=weight, chips=quota) for index, (quota, _) in enumerate(members)
    ]
    world = queues(*facts)
    there = sum(quota for quota, _ in members)
    for index, (quota, used) in enumerate(members):
        queue = world.cluster_queues[f"q{index}"]
        queue.add(CHIPS, used)
        share = share_of(queue)
        borrowed = max(0, used - quota)
        expected = Fraction(borrowed * 1000, there * weight) if there else Fraction(0)
        assert share.precise == pytest.approx(float(expected))
        assert share.borrows == (borrowed > 0)
