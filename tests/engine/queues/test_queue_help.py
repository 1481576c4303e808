"""What would admit a waiting workload, case by case: quota, limits, what others give back, what its owner can do."""

from __future__ import annotations

import pytest

from build.asking import runs
from build.helped import KEY, Help, asked, told, world
from build.queues import (
    cluster_queue,
    cohort,
    flavor,
    limited,
    pod_set,
    quotas,
    workload,
)
from shoal.api.node_affinity import NodeSelector, NodeSelectorTerm
from shoal.api.requirement import Requirement
from shoal.api.taints import Taint
from shoal.engine.queues.facts import PreemptionRules
from shoal.engine.queues.remedies import Effect, RemedyKind
from shoal.engine.queues.settings import Settings

RECLAIM = PreemptionRules(within="LowerPriority", reclaim="Any")


# Quota


def test_a_queue_of_its_own_needs_as_much_more_as_is_missing() -> None:
    here = world(cluster_queue("a", gpu=8), runs("old", "a", gpu=6), workload("incoming", "a", gpu=6))
    assert told(asked(here, RemedyKind.QUOTA)) == [[("a", "nominalQuota", 8, 12)]]


def test_quota_of_a_cohort_above_does_as_well_as_the_queues_own() -> None:
    here = world(cohort("all", gpu=1), cluster_queue("a", cohort="all", gpu=2), workload("incoming", "a", gpu=5))
    assert told(asked(here, RemedyKind.QUOTA)) == [
        [("all", "nominalQuota", 1, 3)],
        [("a", "nominalQuota", 2, 4)],
    ] or told(asked(here, RemedyKind.QUOTA)) == [[("a", "nominalQuota", 2, 4)], [("all", "nominalQuota", 1, 3)]]


def test_two_resources_that_are_short_are_raised_together() -> None:
    here = world(cluster_queue("a", cpu=4, gpu=8, memory="1Gi"), workload("incoming", "a", cpu=6, gpu=9, memory="1Gi"))
    assert told(asked(here, RemedyKind.QUOTA)) == [[("a", "nominalQuota", 4000, 6000), ("a", "nominalQuota", 8, 9)]]


def test_each_flavor_that_would_do_is_told() -> None:
    here = world(cluster_queue("a", quotas("a100", gpu=2), quotas("h100", gpu=3)), workload("incoming", "a", gpu=4))
    assert [(each.changes[0].flavor, each.changes[0].after) for each in asked(here, RemedyKind.QUOTA)] == [
        ("h100", 4),
        ("a100", 4),
    ]


# Quota that others borrow


def lent(rules: PreemptionRules, priority: int = 0) -> Help:
    """`b` borrows the four GPUs of `a`."""
    return world(
        cluster_queue("a", cohort="all", gpu=4, rules=rules),
        cluster_queue("b", cohort="all", gpu=4),
        runs("borrower", "b", gpu=8),
        workload("incoming", "a", gpu=4, priority=priority),
    )


@pytest.mark.parametrize(("priority", "rule"), [(0, "Any"), (1, "LowerPriority")])
def test_a_queue_may_take_back_what_others_borrow_by_the_mildest_rule(priority: int, rule: str) -> None:
    found = asked(lent(PreemptionRules(), priority), RemedyKind.RECLAIM)
    assert told(found) == [[("a", "preemption.reclaimWithinCohort", "Never", rule)]]
    assert found[0].effect is Effect.PREEMPTS


def test_what_no_one_borrows_cannot_be_taken_back() -> None:
    here = world(
        cluster_queue("a", cohort="all", gpu=4),
        cluster_queue("b", cohort="all", gpu=4),
        runs("own", "a", gpu=4),
        runs("other", "b", gpu=4),
        workload("incoming", "a", gpu=4),
    )
    assert asked(here, RemedyKind.RECLAIM) == []


# Limits


def test_the_borrowing_limit_that_binds_is_raised_and_no_other() -> None:
    here = world(
        cohort("root", gpu=20),
        cohort("team", parent="root", gpu=limited(0, borrow=10)),
        cluster_queue("a", cohort="team", gpu=limited(2, borrow=1)),
        workload("incoming", "a", gpu=6),
    )
    assert told(asked(here, RemedyKind.BORROWING)) == [[("a", "borrowingLimit", 1, 4)]]


def test_limits_that_bind_one_above_the_other_are_raised_together() -> None:
    here = world(
        cohort("root", gpu=20),
        cohort("team", parent="root", gpu=limited(0, borrow=2)),
        cluster_queue("a", cohort="team", gpu=limited(2, borrow=1)),
        workload("incoming", "a", gpu=6),
    )
    assert told(asked(here, RemedyKind.BORROWING)) == [
        [("a", "borrowingLimit", 1, 4), ("team", "borrowingLimit", 2, 4)]
    ]


def test_one_who_keeps_quota_to_himself_could_lend_it() -> None:
    here = world(
        cluster_queue("a", cohort="all", gpu=2),
        cluster_queue("b", cohort="all", gpu=limited(8, lend=1)),
        workload("incoming", "a", gpu=6),
    )
    assert told(asked(here, RemedyKind.LENDING)) == [[("b", "lendingLimit", 1, 4)]]


def test_a_lender_can_lend_only_what_it_does_not_use() -> None:
    full = world(
        cluster_queue("a", cohort="all", gpu=2),
        cluster_queue("b", cohort="all", gpu=limited(8, lend=1)),
        runs("own", "b", gpu=5),
        workload("incoming", "a", gpu=6),
    )
    assert asked(full, RemedyKind.LENDING) == []
    less = world(*full.facts, *full.holders, workload("incoming", "a", gpu=5))
    assert told(asked(less, RemedyKind.LENDING)) == [[("b", "lendingLimit", 1, 3)]]


def test_lenders_within_lenders_have_to_lend_together() -> None:
    here = world(
        cohort("root"),
        cohort("team", parent="root", gpu=limited(0, lend=0)),
        cluster_queue("a", cohort="root", gpu=2),
        cluster_queue("b", cohort="team", gpu=limited(8, lend=1)),
        workload("incoming", "a", gpu=5),
    )
    (found,) = asked(here, RemedyKind.LENDING)
    assert {(each.object, each.after) for each in found.changes} == {("ClusterQueue", 3), ("Cohort", 3)}


# Freed


def test_a_borrower_is_told_what_to_give_back() -> None:
    here = world(
        cluster_queue("a", cohort="all", gpu=8),
        cluster_queue("b", cohort="all", gpu=4),
        runs("big", "b", gpu=8),
        runs("small", "b", gpu=2),
        workload("incoming", "a", gpu=6),
    )
    assert told(asked(here, RemedyKind.FREED)) == [[("b", "borrowed", 6, 2)]]


def test_several_give_back_where_nobody_has_enough() -> None:
    here = world(
        cluster_queue("a", cohort="all", gpu=8),
        cluster_queue("b", cohort="all", gpu=0),
        cluster_queue("c", cohort="all", gpu=0),
        runs("one", "b", gpu=5),
        runs("two", "c", gpu=3),
        workload("incoming", "a", gpu=7),
    )
    assert told(asked(here, RemedyKind.FREED)) == [[("b", "borrowed", 5, 0), ("c", "borrowed", 3, 1)]] or told(
        asked(here, RemedyKind.FREED)
    ) == [[("c", "borrowed", 3, 1), ("b", "borrowed", 5, 0)]]


# The workload's own


def test_fewer_pods_are_as_many_as_there_is_room_for() -> None:
    here = world(cluster_queue("a", gpu=5), workload("incoming", "a", pod_set(count=8, gpu=1)))
    assert told(asked(here, RemedyKind.FEWER_PODS)) == [[(KEY, "minCount", 8, 5)]]


def test_a_least_count_that_is_too_high_is_lowered() -> None:
    here = world(cluster_queue("a", gpu=5), workload("incoming", "a", pod_set(count=8, least=6, gpu=1)))
    assert told(asked(here, RemedyKind.FEWER_PODS)) == [[(KEY, "minCount", 6, 5)]]


def test_without_partial_admission_the_job_itself_is_smaller() -> None:
    without = Settings(gates=Settings().gates - {"PartialAdmission"})
    here = world(
        cluster_queue("a", gpu=5), workload("incoming", "a", pod_set(count=8, least=2, gpu=1)), settings=without
    )
    assert told(asked(here, RemedyKind.FEWER_PODS)) == [[(KEY, "count", 8, 5)]]


def test_a_selector_that_rules_out_the_free_flavor_is_named_and_nothing_else() -> None:
    here = world(
        flavor("a100", {"model": "a100"}),
        flavor("h100", {"model": "h100", "zone": "z"}),
        cluster_queue("a", quotas("a100", gpu=1), quotas("h100", gpu=8)),
        workload("incoming", "a", pod_set(gpu=4, selector={"model": "a100", "zone": "z"})),
    )
    assert told(asked(here, RemedyKind.FLAVOR)) == [[(KEY, "nodeSelector", "model=a100", None)]]


def test_a_taint_that_is_not_tolerated_is_named() -> None:
    here = world(
        flavor("spot", taints=[Taint("spot", "NoSchedule", "yes"), Taint("slow", "NoExecute")]),
        cluster_queue("a", quotas("spot", gpu=8)),
        workload("incoming", "a", gpu=4),
    )
    assert told(asked(here, RemedyKind.FLAVOR)) == [
        [(KEY, "tolerations", None, "spot=yes:NoSchedule"), (KEY, "tolerations", None, "slow:NoExecute")]
    ]


def test_an_affinity_that_rules_out_the_flavor_is_named() -> None:
    elsewhere = NodeSelector((NodeSelectorTerm((Requirement("model", "NotIn", ("h100",)),)),))
    here = world(
        flavor("h100", {"model": "h100"}),
        cluster_queue("a", quotas("h100", gpu=8)),
        workload("incoming", "a", pod_set(gpu=4, affinity=elsewhere)),
    )
    assert told(asked(here, RemedyKind.FLAVOR)) == [[(KEY, "nodeAffinity", None, None)]]


def test_a_flavor_that_is_ruled_out_and_full_takes_both_changes() -> None:
    here = world(
        flavor("h100", {"model": "h100"}),
        cluster_queue("a", quotas("h100", gpu=2)),
        workload("incoming", "a", pod_set(gpu=4, selector={"model": "a100"})),
    )
    assert told(asked(here)) == [[(KEY, "nodeSelector", "model=a100", None), ("a", "nominalQuota", 2, 4)]]


def test_a_priority_just_above_those_in_the_way_makes_them_yield() -> None:
    here = world(
        cluster_queue("a", gpu=8, rules=RECLAIM),
        runs("low", "a", gpu=3, priority=10),
        runs("high", "a", gpu=5, priority=1000),
        workload("incoming", "a", gpu=3),
    )
    (found,) = asked(here, RemedyKind.PRIORITY)
    assert (found.changes[0].after, found.effect) == (11, Effect.PREEMPTS)


def test_what_is_told_is_what_the_smallest_change_brings_about_and_not_a_larger_one() -> None:
    here = world(
        cohort("all", gpu=2, memory=2),
        cluster_queue(
            "a", cohort="all", rules=PreemptionRules(within="LowerPriority"), gpu=limited(0, borrow=0), memory=3
        ),
        *(runs(f"old{index}", "a", memory=2) for index in range(2)),
        workload("incoming", "a", pod_set(count=2, least=1, gpu=1, memory=1), priority=1),
    )
    (found,) = asked(here, RemedyKind.BORROWING)
    assert told([found]) == [[("a", "borrowingLimit", 0, 1)]]
    assert found.effect is here.after(found.changes).effect() is Effect.ADMITTED
