"""Whether one flavor has room: at once, by borrowing, by preemption, or never."""

from __future__ import annotations

import pytest

from build.flavors import NO_CANDIDATES, Oracle, choose, pods, shared
from build.queues import cluster_queue, cohort, hold_usage, limited, queues, quotas
from shoal.engine.queues.facts import PreemptionRules
from shoal.engine.queues.flavors.modes import Mode, PreemptionPossibility
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings


def test_what_fits_into_the_own_quota_borrows_nothing() -> None:
    found = choose(shared((5, 5, 2)), "q", pods(cpu=3))
    assert (found.mode, found.borrow, found.message) == (Mode.FIT, 0, "")


def test_what_fits_beyond_the_own_quota_borrows() -> None:
    found = choose(shared((5, 5, 2)), "q", pods(cpu=8))
    assert (found.mode, found.borrow) == (Mode.FIT, 1)


def test_more_than_the_tree_could_ever_give_never_fits() -> None:
    oracle = Oracle()
    found = choose(shared((limited(5, borrow=2), 5, 0)), "q", pods(cpu=8), oracle=oracle)
    assert (found.mode, found.why, oracle.asked) == (Mode.NO_FIT, Wait.EXCEEDS_MAX_QUOTA, [])
    assert found.message.endswith(
        "insufficient quota for cpu in flavor f0, previously considered podsets requests (0) "
        "+ current podset request (8) > maximum capacity (7)"
    )


MAY_PREEMPT: dict[str, tuple[int, PreemptionRules, bool, bool]] = {
    "within the own quota": (5, PreemptionRules(), False, True),
    "beyond the own quota": (6, PreemptionRules(), False, False),
    "beyond it, where preemption may borrow": (
        6,
        PreemptionRules(reclaim="LowerPriority", borrow="LowerPriority"),
        False,
        True,
    ),
    "beyond it, with a policy that does not borrow": (6, PreemptionRules(reclaim="Any"), False, False),
    "beyond it, fairly, where others may be asked": (6, PreemptionRules(reclaim="Any"), True, True),
    "beyond it, fairly, where others may not be asked": (6, PreemptionRules(within="LowerPriority"), True, False),
}


@pytest.mark.parametrize(("amount", "rules", "fair", "asks"), MAY_PREEMPT.values(), ids=MAY_PREEMPT)
def test_preemption_is_thought_of(amount: int, rules: PreemptionRules, fair: bool, asks: bool) -> None:
    world = shared((5, 5, 10), rules=rules, settings=Settings(fair_sharing=fair))
    oracle = Oracle()
    found = choose(world, "q", pods(cpu=amount), oracle=oracle)
    assert oracle.asked == ([("f0", "cpu", amount * 1000)] if asks else [])
    assert found.mode is (Mode.PREEMPT if asks else Mode.NO_FIT)
    assert found.why is (Wait.VICTIMS if asks else Wait.QUOTA)
    assert found.message == (
        f"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f0, {amount} more needed"
    )


def test_preemption_is_thought_of_where_a_cohort_below_the_root_holds_the_request() -> None:
    world = queues(
        cohort("root", cpu=1),
        cohort("team", parent="root", cpu=10),
        cluster_queue("q", cohort="team", cpu=0),
        cluster_queue("mate", cohort="team", cpu=0),
        cluster_queue("far", cohort="root", cpu=0),
    )
    hold_usage(world, "far", cpu=11)
    assert choose(world, "q", pods(cpu=10)).mode is Mode.PREEMPT
    assert choose(world, "q", pods(cpu=11)).mode is Mode.NO_FIT


def test_an_over_used_flavor_still_takes_who_asks_for_nothing() -> None:
    world = shared((5, 0, 5))
    world.put(cluster_queue("q", quotas("f0", cpu=1), cohort="all"))
    world.refresh()
    assert choose(world, "q", pods(cpu=0)).mode is Mode.FIT


def test_the_borrowing_level_after_preemption_is_the_oracles() -> None:
    found = choose(shared((5, 5, 10)), "q", pods(cpu=2), oracle=Oracle({"f0": PreemptionPossibility(Mode.RECLAIM, 1)}))
    assert (found.mode, found.borrow) == (Mode.PREEMPT, 1)
    assert found.pod_sets[0].flavors["cpu"].mode is Mode.RECLAIM
    assert found.to_preempt == {("f0", "cpu")}


def test_where_nobody_may_be_stopped_it_waits_for_quota() -> None:
    found = choose(shared((5, 5, 10)), "q", pods(cpu=2), oracle=Oracle({"f0": NO_CANDIDATES}))
    assert (found.mode, found.why) == (Mode.PREEMPT, Wait.QUOTA)
