"""Laws of the queues' discipline, over random small worlds that do what they are told.

Where Kueue's own rules break what one would wish, the law says for which settings it holds, and why not for the others.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.obeying import Obeying, played
from build.plain_quota import COHORT
from build.queue_stories import BOTH, ONE, THREE, TWO, Arrive, Bounds, Explanation, Happening, Round
from build.queue_worlds import ALL, stories
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.reasons import Wait


def decided(decisions: Decisions) -> object:
    """All that a cycle says, in an order of its own."""
    return (
        sorted((each.workload, each.admission.pod_sets) for each in decisions.admitted),
        sorted((each.workload, each.beneficiary, each.reason) for each in decisions.preempted),
        sorted((each.workload, each.state, each.why, each.message) for each in decisions.waiting),
    )


# Quota


@pytest.mark.parametrize("bounds", [ALL, Bounds(reservations=True)], ids=["plain", "with reservations"])
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_a_cycle_takes_no_node_of_the_tree_beyond_what_it_may_use(bounds: Bounds, data: st.DataObject) -> None:
    """Own quota, what others lend, and what may be borrowed of it, summed anew from the decisions. Where quota was cut
    below use, a cycle adds nothing. Those that were told to stop are not counted while they are on their way out: what
    they leave over beside their beneficiary is given away in the same cycle, as Kueue does."""
    story = data.draw(stories(bounds))
    world = Obeying(story)
    for happening in [*story.happenings, *[Round(is_over=True)] * 3]:
        if not isinstance(happening, Round):
            world.tell(happening)
            continue
        before = world.lasting.excess()
        is_calm = not world.terminating
        is_calm = not world.cycle().preempted and is_calm
        quota = world.quota if is_calm else world.lasting
        for where, use in quota.excess().items():
            assert use <= before.get(where, -1), f"{where} uses {use}"
        if happening.is_over:
            world.let_go()


@settings(max_examples=examples(30), deadline=None)
@given(stories())
def test_what_the_tree_counts_is_what_was_decided(story: Explanation) -> None:
    world = played(story)
    world.kueue.queues.refresh()
    plain, queues = world.quota, world.kueue.queues
    nodes = {**queues.cluster_queues, **{COHORT + name: node for name, node in queues.cohorts.items()}}
    assert nodes.keys() == plain.parents.keys()
    for name, node in nodes.items():
        for fr in {*node.usage, *node.subtree}:
            assert node.usage.get(fr, 0) == plain.use(name, fr)
            assert node.subtree.get(fr, 0) == plain.subtree(name, fr)
            assert node.kept.get(fr, 0) == plain.kept(name, fr)


# Preemption


def waits_for_victims(decisions: Decisions) -> set[str]:
    """Those who made room, and those for whom others' victims are enough."""
    for_whom = {each.beneficiary for each in decisions.preempted}
    waiting = {each.workload: each.message for each in decisions.waiting if each.why is Wait.VICTIMS}
    assert for_whom <= waiting.keys()
    return {key for key, message in waiting.items() if key in for_whom or message.startswith("Waiting for")}


@settings(max_examples=examples(60), deadline=None)
@given(stories(Bounds(shapes=(ONE, BOTH), partial=False)))
def test_once_all_victims_have_left_whoever_they_left_for_is_admitted(story: Explanation) -> None:
    """In the next cycle, if nobody else asks.

    Kueue asks for the full size again, and may find victims for it then: whoever may start smaller is not here. With
    several flavors the second look may stop at a flavor that only now offers victims: so each resource has one.
    """
    world = played(story)
    world.let_go()
    for _ in range(4):
        decisions = world.cycle()
        if decisions.preempted:
            sure = waits_for_victims(decisions)
            world.only(sure)
            assert {each.workload for each in world.cycle().admitted} == sure
            return
        world.let_go()


@settings(max_examples=examples(50), deadline=None)
@given(stories(Bounds(shapes=(ONE, BOTH), partial=False, changes=False)))
def test_whoever_made_room_gets_it_unless_another_comes_first(story: Explanation) -> None:
    """In the next cycle, with victims and everybody else back in line. Kueue's order puts another first who borrows
    less or has a smaller share: then that one was admitted, or made room itself, or keeps what it cannot have yet."""
    world = played(story)
    world.let_go()
    for _ in range(6):
        for_whom = {each.beneficiary for each in world.cycle().preempted}
        world.let_go()
        after = world.cycle()
        admitted = {each.workload for each in after.admitted}
        others = admitted | {each.beneficiary for each in after.preempted}
        others |= {each.workload for each in after.waiting if "no candidate workloads" in each.message}
        assert for_whom <= admitted or others - for_whom
        world.let_go()


QUIET = {
    # Reclaim only, in trees of any depth: whoever takes ends up within quota, own or of its cohort, and comes first.
    # With `withinClusterQueue` beside it, one that borrows makes room which another borrower then takes.
    "reclaiming": Bounds(fair=False, within=False, while_borrowing=False, shapes=(ONE, BOTH), partial=False),
    # Everything at once in a flat cohort, in equal steps. A large workload takes from a queue more than that borrowed,
    # and what is left of its victims fights back; in a deep tree a victim may borrow at a lower level, and come first.
    "equal steps in a flat cohort": Bounds(fair=False, cohorts=1, shapes=(ONE, TWO, THREE), units=True),
    "within the queue": Bounds(reclaim=False, pod_sets=1, partial=False),
    "fair sharing in equal steps": Bounds(
        fair=True, cohorts=1, queues=3, shapes=(ONE,), units=True, weights=(1.0, 1.0, 1.0, 0.5, 0.0)
    ),
}
"""Settings without endless fights. Without them Kueue may preempt and admit the same two in turns (its issue 2821)."""


@pytest.mark.parametrize("bounds", QUIET.values(), ids=QUIET)
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_a_world_that_obeys_comes_to_rest_and_nobody_strikes_back(bounds: Bounds, data: st.DataObject) -> None:
    world = played(data.draw(stories(bounds)))
    world.let_go()
    blows = {(each.workload, each.beneficiary) for done in world.rest() for each in done.preempted}
    assert not any((beneficiary, victim) in blows for victim, beneficiary in blows)


@settings(max_examples=examples(40), deadline=None)
@given(stories(Bounds(within=False, reclaim=False)))
def test_where_nobody_is_preempted_every_world_comes_to_rest(story: Explanation) -> None:
    assert played(story).rest()[-1].is_quiet


# Order


@settings(max_examples=examples(40), deadline=None)
@given(stories(), st.randoms(use_true_random=False))
def test_the_order_in_which_equal_facts_arrive_is_irrelevant(story: Explanation, dice: Random) -> None:
    other = _shuffled(story, dice)
    one, two = Obeying(story), Obeying(other)
    more = [Round(is_over=True)] * 4
    for happening, again in zip([*story.happenings, *more], [*other.happenings, *more], strict=True):
        if isinstance(happening, Round):
            assert decided(one.cycle()) == decided(two.cycle())
            if happening.is_over:
                assert sorted(one.let_go()) == sorted(two.let_go())
        else:
            one.tell(happening)
            two.tell(again)


def _shuffled(story: Explanation, dice: Random) -> Explanation:
    """Facts in another order, and workloads that arrive between two other happenings."""
    facts, happenings = list(story.facts), list[Happening]()
    dice.shuffle(facts)
    together: list[Happening] = []
    for happening in story.happenings:
        if isinstance(happening, Arrive):
            together.append(happening)
            continue
        dice.shuffle(together)
        happenings += [*together, happening]
        together = []
    dice.shuffle(together)
    return Explanation(story.settings, facts, [*happenings, *together])
