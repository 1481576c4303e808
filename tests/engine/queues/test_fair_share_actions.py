"""The actions of the fair-share discipline: order of queues, limits, steps, reclaim, minimum runtimes, stale gangs."""

from __future__ import annotations

import pytest

from build.fair_share import GPU, NOW_S, FairWorld, placed, promised, queue, stopped
from shoal.engine.cycle import cycle
from shoal.engine.plan import Plan
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareSettings
from shoal.engine.queues.disciplines.kai.fair_queues import QueueNode, QueueTree
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.queues.disciplines.kai.queue_order import queue_key
from shoal.engine.reasons import Code

# -- order of queues -----------------------------------------------------------------------------------------------


def node_of(name: str = "q", age: int = 0, priority: int = 100, **held: tuple[int, ...]) -> QueueNode:
    """Amounts as (GPUs, cores, memory); the quota is 4 of each, and so is the fair share unless it is given."""
    tree = QueueTree([queue(name, quota=None, priority=priority)])
    node = tree.nodes[name]
    node.age = age
    node.facts = type(node.facts)(name, quota=(4, 4, 4), priority=priority)
    node.allocated = list(held.get("allocated", (0, 0, 0)))
    node.fair_share = list(held.get("fair", (4, 4, 4)))
    node.measure = list(held.get("measure", (4, 4, 4)))
    return node


ORDER = {
    "above its fair share in all resources at once: last": (
        (node_of(allocated=(5, 5, 5)), (0, 0, 0)),
        (node_of(allocated=(9, 9, 4), priority=1), (0, 0, 0)),
    ),
    "within quota in all resources with the step: first": (
        (node_of(allocated=(0, 4, 0)), (0, 1, 0)),
        (node_of(allocated=(4, 0, 0), priority=1), (0, 4, 4)),
    ),
    "then by priority": (
        (node_of(allocated=(0, 0, 0)), (1, 0, 0)),
        (node_of(allocated=(3, 0, 0), priority=200), (1, 0, 0)),
    ),
    "one that uses what it has no share of: after those that do not": (
        (node_of(measure=(0, 4, 4)), (1, 0, 0)),
        (node_of(allocated=(3, 0, 0)), (1, 0, 0)),
    ),
    "the smaller dominant share with the step": (
        (node_of(allocated=(1, 0, 0)), (2, 0, 0)),
        (node_of(allocated=(0, 2, 0)), (2, 0, 0)),
    ),
    "of equals the smaller one without it": (
        (node_of(allocated=(2, 0, 0)), (1, 0, 0)),
        (node_of(allocated=(1, 0, 0)), (2, 0, 0)),
    ),
    "of equals the smaller allocatable share": (
        (node_of(measure=(4, 4, 4)), (0, 0, 0)),
        (node_of(age=1, measure=(3, 4, 4)), (0, 0, 0)),
    ),
    "of equals the older": ((node_of(age=1), (1, 0, 0)), (node_of(age=0), (1, 0, 0))),
}


@pytest.mark.parametrize("name", ORDER)
def test_queues_are_ordered_by(name: str) -> None:
    (later, step), (earlier, other) = ORDER[name]
    assert queue_key(earlier, other) < queue_key(later, step)


def test_turns_are_worked_out_anew_after_every_job() -> None:
    world = FairWorld([4], queue("a", quota=2), queue("b", quota=2))
    for at in range(3):
        world.job(f"a{at}", "a").job(f"b{at}", "b")
    assert placed(world.run("allocate")) == ["a0-0", "b0-0", "a1-0", "b1-0"]


def test_queues_that_are_missing_orphans_or_no_leaves_are_not_looked_at() -> None:
    world = FairWorld([8], queue("top", quota=None), queue("leaf", "top", quota=4), queue("lost", "gone", quota=4))
    for name in ("top", "leaf", "lost", "none"):
        world.job(name, name)
    assert placed(world.run("allocate")) == ["leaf-0"]


# -- limits and steps ----------------------------------------------------------------------------------------------


def test_limits_hold_at_every_ancestor_and_quotas_for_what_is_never_preempted() -> None:
    queues = [queue("top", quota=3, limit=4), queue("a", "top", quota=4), queue("b", "top", quota=4)]
    world = FairWorld([8], *queues).job("x", "a", 3).job("y", "b", 2)
    assert placed(world.run("allocate")) == ["y-0"]
    last = world.discipline.last
    assert last is not None and last.why["x"] is Code.OVER_LIMIT  # noqa: PT018
    world = FairWorld([8], *queues).job("n1", "a", 2, priority=100).job("n2", "b", 2, priority=100)
    assert placed(world.run("allocate")) == ["n1-0"]
    last = world.discipline.last
    assert last is not None and last.why["n2"] is Code.OVER_QUOTA  # noqa: PT018


def test_a_limit_is_a_reason_to_preempt_although_nodes_have_room() -> None:
    world = FairWorld([8], queue("a", quota=2, limit=2)).job("low", "a", 2, on=["n0"]).job("high", "a", 1, priority=75)
    plan = world.run("allocate", "preempt")
    assert (stopped(plan), promised(plan)) == (["low-0"], ["high-0"])


def test_a_step_is_the_minimum_of_all_subgroups_and_then_one_pod() -> None:
    world = FairWorld([8], queue("a", quota=8)).job("g", "a", 1, pods=4, parts=[("p", 1), ("q", 2)])
    world.job("late", "a", 5)
    # The minimum takes 3; after it comes the other job, which fits, and then the pod beyond the minimum does not.
    assert placed(world.run("allocate")) == ["g-0", "g-2", "g-3", "late-0"]


def test_a_gang_of_which_one_pod_must_wait_only_gets_promises() -> None:
    world = FairWorld([1, 1], queue("a", quota=4)).job("old", "a", on=["n0"]).job("g", "a", 1, pods=2)
    world.cluster.mark_terminating("old-0")
    plan = world.run("allocate")
    assert (placed(plan), promised(plan)) == ([], ["g-0", "g-1"])


def test_room_that_was_promised_to_a_pod_is_its_own_though_a_pod_before_it_in_its_job_waits_again() -> None:
    world = FairWorld([2], queue("a"), queue("b", quota=2)).job("old", "b", on=["n0"])
    world.job("x", "a", pods=2, minimum=1, on=["n0"])
    world.cluster.mark_terminating("old-0")
    assert promised(world.run("allocate")) == ["x-1"]
    world.gone("old-0").gone("x-0", is_created_again=True).job("y", "b").job("z", "b")
    assert placed(world.run("allocate")) == ["x-1", "y-0"]


def test_the_same_holds_for_a_job_with_subgroups() -> None:
    world = FairWorld([2], queue("a"), queue("b", quota=2)).job("old", "b", on=["n0"])
    world.job("x", "a", pods=2, parts=[("p", 1)], on=["n0"])
    world.cluster.mark_terminating("old-0")
    assert promised(world.run("allocate")) == ["x-1"]
    world.gone("old-0").gone("x-0", is_created_again=True).job("y", "b").job("z", "b")
    assert placed(world.run("allocate")) == ["x-1", "y-0"]


# -- reclaim -------------------------------------------------------------------------------------------------------


def test_reclaim_takes_no_more_than_it_needs_and_the_newest_first() -> None:
    world = FairWorld([4], queue("a", quota=2), queue("b", quota=2))
    for at in range(4):
        world.job(f"a{at}", "a", on=["n0"])
    world.job("b0", "b", 1)
    plan = world.run("reclaim")
    assert (stopped(plan), promised(plan)) == (["a3-0"], ["b0-0"])


def test_the_claimant_stays_within_its_fair_share() -> None:
    world = FairWorld([4], queue("a", quota=2), queue("b", quota=2)).job("a0", "a", 1, pods=4, minimum=1, on=["n0"] * 4)
    assert stopped(world.job("b0", "b", 3).run("reclaim")) == []
    assert stopped(world.job("b1", "b", 2).run("reclaim")) == ["a0-2", "a0-3"]


def test_work_that_is_never_preempted_reclaims_within_its_quota_only() -> None:
    world = FairWorld([4], queue("a", quota=1, weight=0), queue("b", quota=1, weight=3))
    world.job("a0", "a", 1, pods=4, minimum=1, on=["n0"] * 4).job("b0", "b", 2, priority=100)
    assert stopped(world.run("reclaim")) == []


def test_a_queue_within_its_quota_takes_back_what_others_hold_beyond_theirs() -> None:
    """The victim is not above its fair share: that of a queue of higher priority."""
    world = FairWorld([4], queue("a", quota=1, weight=5, priority=200), queue("b", quota=2))
    world.job("a0", "a", 1, pods=4, minimum=1, on=["n0"] * 4).job("b0", "b", 2)
    assert stopped(world.run("reclaim")) == ["a0-2", "a0-3"]


def test_shares_are_compared_below_the_lowest_common_ancestor() -> None:
    """Inside d2 both are entitled; between the departments only d1 is above its share."""
    queues = [queue("d1", quota=2), queue("d2", quota=2), queue("a", "d1", quota=2), queue("b", "d2", quota=2)]
    world = FairWorld([4], *queues).job("a0", "a", 1, pods=3, minimum=1, on=["n0"] * 3).job("b0", "b", 1, on=["n0"])
    plan = world.job("b1", "b", 1).run("reclaim")
    assert stopped(plan) == ["a0-2"]
    assert stopped(world.job("b2", "b", 2).run("reclaim")) == []


def test_no_reclaim_that_its_victim_would_take_back_at_once() -> None:
    """The first job of the claimant's queue is so large that the victim's queue would be served before it."""
    world = FairWorld([4], queue("a", quota=2), queue("b", quota=2))
    world.job("a0", "a", 2, on=["n0"]).job("a1", "a", 1, on=["n0"]).job("b0", "b", 1, on=["n0"])
    world.job("b-large", "b", 3).job("b-small", "b", 1)
    assert stopped(world.run("allocate", "reclaim")) == []


def test_a_job_that_would_be_served_first_and_reclaims_nothing_keeps_no_other_from_reclaiming() -> None:
    """The claimant is nominated and comes first by that. Only what yielded itself would take its room back."""
    inside = [queue("x", "one", weight=0), queue("y", "one", weight=3)]
    world = FairWorld([3], queue("one", quota=None), queue("two", quota=1), *inside)
    world.job("x0", "x", on=["n0"]).job("y0", "y", on=["n0"]).job("y1", "y", on=["n0"])
    world.job("y2", "y").job("t0", "two")
    plan = world.run("reclaim")
    assert (stopped(plan), promised(plan)) == (["x0-0"], ["y2-0"])


def test_work_that_may_not_be_stopped_keeps_its_place_before_work_that_may() -> None:
    """The work of `a` is in its share, and it comes first in the line of victims. By the order of queues the pod beside
    the claimant's would be placed again before it."""
    inside = [queue("over", "b", weight=2), queue("mine", "b", quota=1)]
    world = FairWorld([4], queue("top", quota=5, weight=0), queue("a", "top"), queue("b", "top"), *inside)
    for at in range(3):
        world.job(f"a{at}", "a", on=["n0"])
    world.job("over0", "over", on=["n0"]).job("a3", "a").job("a4", "a").job("over1", "over").job("mine", "mine")
    plan = world.run("reclaim")
    assert (stopped(plan), promised(plan)) == (["over0-0"], ["mine-0"])


def test_what_fits_elsewhere_is_moved_and_does_not_count_as_taken() -> None:
    world = FairWorld([3, 2], queue("a", quota=2, weight=3), queue("b", quota=2, weight=0))
    world.job("a0", "a", 2, on=["n0"]).job("a1", "a", 1, on=["n1"]).job("b0", "b", 2)
    plan = world.run("reclaim")
    assert (stopped(plan), [(move.pod, move.target) for move in plan.moved]) == ([], [("a1-0", "n0")])
    assert promised(plan) == ["b0-0"]


def test_a_pod_that_fits_beside_the_claimant_keeps_its_node_and_its_device() -> None:
    """The pod above a minimum is taken off first; when the gang yields as well, there is room for it again."""
    world = FairWorld([4], queue("a", quota=4)).job("elastic", "a", pods=2, minimum=1, on=["n0"] * 2)
    world.job("gang", "a", pods=2, on=["n0"] * 2).job("high", "a", 2, priority=75)
    plan = world.run("preempt")
    assert (stopped(plan), plan.moved, promised(plan)) == (["gang-0", "gang-1"], [], ["high-0"])


def test_claimants_of_many_pods_go_on_where_the_search_for_others_has_ended() -> None:
    """What yields to a large claimant is kept for the next one; a small one between them takes some of it."""
    world = FairWorld([8] * 36, queue("a", quota=8), queue("b", quota=280))
    for at in range(288):
        world.job(f"a{at}", "a", on=[f"n{at % 36}"])
    world.job("l1", "b", 8, pods=7).job("s1", "b", 8).job("l2", "b", 8, pods=7).job("s2", "b", 8)
    plan = world.run("reclaim")
    assert len(promised(plan)) == 16
    assert len(stopped(plan)) == len(set(stopped(plan))) == 128


@pytest.mark.parametrize(("multiplier", "count"), [(0.5, 1), (1.0, 1), (3.9, 1), (4.0, 0)])
def test_above_its_share_the_claimant_stays_less_saturated_than_the_sibling(multiplier: float, count: int) -> None:
    """Afterwards d2 holds 2 and d1 8, and each has a share of 1. A multiplier below 1 counts as 1."""
    settings = FairshareSettings(stale_grace_s=-1, reclaim_multiplier=multiplier)
    departments = [queue("d1", quota=1, weight=0), queue("d2", quota=1, weight=0)]
    world = FairWorld([10], *departments, queue("a", "d1", quota=9), queue("b", "d2", quota=8), settings=settings)
    for at in range(9):
        world.job(f"a{at}", "a", on=["n0"])
    world.job("b0", "b", on=["n0"]).job("b1", "b")
    assert len(stopped(world.run("reclaim"))) == count


# -- consolidation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "moves"), [(16, 1), (1, 0)])
def test_consolidation_looks_at_so_many_jobs(most: int, moves: int) -> None:
    """The newest job could move but does not help; the one before it does."""
    settings = FairshareSettings(stale_grace_s=-1, most_movers=most)
    world = FairWorld([4, 4, 1], queue("a", quota=9), settings=settings)
    world.job("x", "a", 2, on=["n0"]).job("y", "a", 2, on=["n1"]).job("z", "a", 1, on=["n2"]).job("p", "a", 4)
    plan = world.run("consolidation")
    assert [move.pod for move in plan.moved] == ["y-0"][:moves]


def test_consolidation_is_for_preemptible_claimants_and_needs_enough_free_gpus() -> None:
    world = FairWorld([4, 4], queue("a", quota=9)).job("x", "a", 2, on=["n0"]).job("y", "a", 2, on=["n1"])
    assert world.job("never", "a", 4, priority=100).run("consolidation").moved == []
    assert world.job("large", "a", 5).run("consolidation").moved == []


# -- minimum runtimes --------------------------------------------------------------------------------------------------


def departments(reclaim_s: float) -> FairWorld:
    queues = [queue("d1", quota=2, reclaim_s=reclaim_s), queue("d2", quota=2), queue("a", "d1", quota=2, reclaim_s=5.0)]
    return FairWorld([4], *queues, queue("b", "d2", quota=2))


@pytest.mark.parametrize(("minimum_s", "is_stopped"), [(100.0, True), (5000.0, False)])
def test_reclaim_waits_for_the_runtime_of_the_ancestor_below_the_common_one(minimum_s: float, is_stopped: bool) -> None:
    world = departments(reclaim_s=minimum_s).job("a0", "a", 4, on=["n0"], since_s=NOW_S - 1000).job("b0", "b", 2)
    assert bool(stopped(world.run("reclaim"))) is is_stopped


def test_by_option_the_victims_own_queue_is_asked_first() -> None:
    world = departments(reclaim_s=5000.0).job("a0", "a", 4, on=["n0"], since_s=NOW_S - 1000).job("b0", "b", 2)
    world.discipline.settings = FairshareSettings(stale_grace_s=-1, reclaim_min_runtime_of_victim=True)
    assert stopped(world.run("reclaim")) == ["a0-0"]


def test_a_protected_job_yields_what_it_has_above_its_minimum() -> None:
    world = departments(reclaim_s=5000.0)
    world.job("a0", "a", 1, pods=4, minimum=3, on=["n0"] * 4, since_s=NOW_S - 1000)
    assert stopped(world.job("b0", "b", 1).run("reclaim")) == ["a0-3"]
    assert stopped(world.job("b1", "b", 1).run("reclaim")) == []


def test_preemption_inherits_the_nearest_runtime() -> None:
    queues = [queue("top", quota=2, preempt_s=5000.0), queue("a", "top", quota=2)]
    world = FairWorld([2], *queues).job("low", "a", 2, on=["n0"], since_s=NOW_S - 1000).job("high", "a", 2, priority=75)
    assert stopped(world.run("preempt")) == []
    world.now_s = NOW_S + 4000
    assert stopped(world.run("preempt")) == ["low-0"]


# -- stale gangs ---------------------------------------------------------------------------------------------------


def stale(**job: float) -> FairWorld:
    world = FairWorld([4], queue("a", quota=4), settings=FairshareSettings(stale_grace_s=60))
    return world.job("g", "a", 1, pods=3, on=["n0", "n0"], **job)  # type: ignore[arg-type]


def test_the_rest_of_a_gang_is_stopped_after_the_grace() -> None:
    world = stale()
    assert stopped(world.run("stalegangeviction")) == []
    world.now_s += 58
    assert stopped(world.run("stalegangeviction")) == []
    world.now_s += 1
    assert stopped(world.run("stalegangeviction")) == ["g-0", "g-1"]


def test_the_moment_when_it_began_survives_a_restart() -> None:
    assert stopped(stale(stale_since_s=NOW_S - 60).run("stalegangeviction")) == ["g-0", "g-1"]
    world = stale()
    world.run("stalegangeviction")
    assert world.discipline.stale_since_s == {"g": NOW_S}


def test_a_gang_of_which_a_pod_succeeded_is_not_stale() -> None:
    assert stopped(stale(stale_since_s=0.0, succeeded=1).run("stalegangeviction")) == []


# -- use over time, depth, idle cycles -----------------------------------------------------------------------------


def test_use_of_the_past_corrects_the_shares_of_a_tree() -> None:
    queues = [queue("top", quota=8), queue("a", "top"), queue("b", "top")]
    world = FairWorld([8], *queues).job("a0", "a", 8).job("b0", "b", 8)
    world.discipline.usage = {"a": (0.75, 0, 0), "b": (0.25, 0, 0)}
    world.run("reclaim")
    last = world.discipline.last
    assert last is not None
    assert {name: last.tree.nodes[name].fair_share[0] / GPU for name in "ab"} == {"a": 2, "b": 6}


def test_a_line_is_cut_to_the_depth_of_the_action() -> None:
    world = FairWorld([8], queue("a", quota=8), settings=FairshareSettings(depths={"allocate": 2}))
    for at in range(4):
        world.job(f"j{at}", "a")
    assert placed(world.run("allocate")) == ["j0-0", "j1-0"]


def test_a_cycle_in_which_nothing_changed_decides_the_same_at_no_cost() -> None:
    world = FairWorld([2], queue("a", quota=2)).job("x", "a", 2, on=["n0"]).job("y", "a", 1)
    world.run()
    world.run()
    before = world.discipline.last
    assert world.run().intentions == ()
    assert world.discipline.last is before
    world.job("z", "a", 0)
    assert placed(world.run()) == ["z-0"]


def test_a_cycle_that_goes_on_where_the_last_one_was_cut_decides_as_one_that_reads_all_jobs_again() -> None:
    def plans(*, reads_again: bool) -> list[Plan]:
        world = FairWorld([8] * 4, queue("a", quota=4), queue("b", quota=8, limit=9), queue("c", weight=2))
        for at in range(12):
            world.job(f"a{at}", "a", pods=2).job(f"b{at}", "b").job(f"c{at}", "c", pods=3, minimum=2)
        found: list[Plan] = []
        while not found or found[-1].is_cut:
            if reads_again:
                world.discipline = Fairshare(world.discipline.queues, world.discipline.settings)
            steps = world.discipline.steps()
            found.append(cycle(world.cluster, world.placement, now_s=NOW_S, seed=0, steps=steps, most=5))
        return found

    went_on, read_again = plans(reads_again=False), plans(reads_again=True)
    assert len(went_on) > 4
    assert [plan.intentions for plan in went_on] == [plan.intentions for plan in read_again]
