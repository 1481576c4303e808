"""Small cases against enumeration: what quota allows, who is left over at the end, and whom preemption may take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.depth import examples
from build.obeying import Obeying
from build.plain_quota import choices
from build.queue_stories import ONE, Arrive, Bounds, Explanation
from build.queue_worlds import stories
from shoal.engine.queues.facts import ClusterQueueFacts, PodSet, WorkloadFacts

NOBODY_YIELDS = Bounds(
    queues=3, cohorts=3, holders=0, arrivals=4, within=False, reclaim=False, partial=False, changes=False, pod_sets=1
)
UNITS = Bounds(queues=3, cohorts=1, holders=9, arrivals=2, shapes=(ONE,), fair=False, units=True, changes=False)
CPU = ("f0", "cpu")


def arrivals(story: Explanation) -> list[WorkloadFacts]:
    return [each.facts for each in story.happenings if isinstance(each, Arrive)]


@settings(max_examples=examples(60), deadline=None)
@given(stories(NOBODY_YIELDS))
def test_a_head_alone_is_admitted_exactly_where_some_choice_of_flavors_fits(story: Explanation) -> None:
    """One after the other, each alone with what those before it use."""
    world = Obeying(story)
    for facts in arrivals(story):
        queue = world.queue_of(facts)
        assert queue is not None
        fits = any(world.quota.could_take(queue.name, usage) for usage in choices(queue, facts))
        world.tell(Arrive(facts))
        assert [each.workload for each in world.cycle().admitted] == ([facts.key] if fits else [])
        world.only([])


@settings(max_examples=examples(60), deadline=None)
@given(stories(replace(NOBODY_YIELDS, strict=False)))
def test_at_rest_nobody_is_left_over_who_would_fit(story: Explanation) -> None:
    """Behind the head of a strict queue somebody may; and a strict head keeps its room from those who borrow."""
    world = Obeying(story)
    for facts in arrivals(story):
        world.tell(Arrive(facts))
    world.rest()
    assert not world.quota.excess()
    for facts in world.waiting.values():
        queue = world.queue_of(facts)
        assert queue is not None
        for usage in choices(queue, facts):
            assert not world.quota.could_take(queue.name, usage), f"{facts.key} could have {usage}"


@settings(max_examples=examples(40), deadline=None)
@given(stories(NOBODY_YIELDS))
def test_a_strict_queue_admits_in_order_and_stops_at_the_first_that_does_not_fit(story: Explanation) -> None:
    world = Obeying(story)
    for facts in arrivals(story):
        world.tell(Arrive(facts))
    order: dict[str, list[WorkloadFacts]] = {}
    for facts in sorted(arrivals(story), key=lambda each: (-each.priority, each.created_s, each.uid)):
        queue = world.queue_of(facts)
        if queue is not None and queue.strategy == "StrictFIFO":
            order.setdefault(queue.name, []).append(facts)
    admitted = [each.workload for done in world.rest() for each in done.admitted]
    for line in order.values():
        expected = [facts.key for facts in line]
        found = [key for key in admitted if key in expected]
        assert found == expected[: len(found)]


# Preemption in one flat cohort, whoever runs has one core


@settings(max_examples=examples(120), deadline=None)
@given(stories(UNITS), st.sampled_from([1, 1, 2, 3]))
def test_victims_are_found_exactly_where_some_of_those_allowed_make_room(story: Explanation, cores: int) -> None:
    """All sets of victims that the rules allow are tried, one core each. With other sizes the greedy search may miss a
    set: it takes the lowest priority first, and spares a queue as soon as it is back within quota."""
    world = _filled(story)
    facts = next(facts for facts in arrivals(story) if facts.admission is None)
    facts = structs.replace(facts, pod_sets=(PodSet(requests={"cpu": cores}),))
    queue = world.queue_of(facts)
    assert queue is not None
    quota = world.quota
    assert not quota.excess()
    world.tell(Arrive(facts))
    decisions = world.cycle()
    fits = quota.could_take(queue.name, {CPU: cores})
    assert bool(decisions.admitted) == fits
    sets = [] if fits else list(_allowed(world, facts, queue, cores))
    taken: dict[str, int] = {}
    for each in decisions.preempted:
        admission = world.holding[each.workload].admission
        assert admission is not None
        taken[admission.cluster_queue] = taken.get(admission.cluster_queue, 0) + 1
    assert bool(taken) == bool(sets)
    assert not taken or taken in sets


def _filled(story: Explanation) -> Obeying:
    """Those of the holders for whom there is room."""
    world = Obeying(story)
    for facts in arrivals(story):
        if facts.admission is not None and world.quota.could_take(facts.admission.cluster_queue, {CPU: 1}):
            world.tell(Arrive(facts))
    return world


def _allowed(world: Obeying, facts: WorkloadFacts, mine: ClusterQueueFacts, cores: int) -> Iterator[dict[str, int]]:
    """So many victims of each queue, as the policies of the queue allow, after whose leaving there is room."""
    rules, quota = mine.preemption, world.quota
    queues = [fact for fact in world.facts.values() if isinstance(fact, ClusterQueueFacts)]
    nominal, used = quota.quota(mine.name, CPU).nominal, quota.used.get(mine.name, {}).get(CPU, 0)
    if nominal < cores and rules.borrow == "Never":
        return
    is_mine = used + cores <= nominal
    """Whether it has a right to the room: then whoever borrows it gives it back."""
    for borrows in (False, True):
        most: dict[str, int] = {}
        for queue in queues:
            holders = [each for each in world.holding.values() if _holds(each, queue.name)]
            if queue.name == mine.name:
                willing = [each for each in holders if _is_preemptible(each, facts, rules.within)]
            elif queue.cohort != mine.cohort or not mine.cohort:
                willing = []
            else:
                willing = [each for each in holders if _is_preemptible(each, facts, rules.reclaim)]
                if borrows and not is_mine:
                    willing = [each for each in willing if _yields_to_borrower(each, facts, mine)]
                if not borrows and used >= nominal and rules.borrow == "Never":
                    # Without a right to borrow, and with its own used up, it does not ask others at all.
                    willing = []
                over = quota.used.get(queue.name, {}).get(CPU, 0) - quota.quota(queue.name, CPU).nominal
                willing = willing[: max(0, over)]
            most[queue.name] = len(willing)
        for numbers in product(*(range(limit + 1) for limit in most.values())):
            victims = {name: number for name, number in zip(most, numbers, strict=True) if number}
            ends_within = used - victims.get(mine.name, 0) + cores <= nominal
            if victims and (borrows or ends_within) and _makes_room(world, mine.name, victims, cores):
                yield victims


def _holds(each: WorkloadFacts, queue: str) -> bool:
    return each.admission is not None and each.admission.cluster_queue == queue


def _is_preemptible(each: WorkloadFacts, to: WorkloadFacts, policy: str) -> bool:
    newer = each.priority == to.priority and each.created_s > to.created_s
    return {
        "Never": False,
        "LowerPriority": each.priority < to.priority,
        "LowerOrNewerEqualPriority": each.priority < to.priority or newer,
        "Any": True,
    }[policy]


def _yields_to_borrower(each: WorkloadFacts, to: WorkloadFacts, mine: ClusterQueueFacts) -> bool:
    threshold = mine.preemption.borrow_threshold
    is_below = each.priority < to.priority and (threshold is None or each.priority <= threshold)
    return mine.preemption.borrow != "Never" and is_below


def _makes_room(world: Obeying, mine: str, victims: dict[str, int], cores: int) -> bool:
    quota = world.quota
    for name, number in victims.items():
        quota.add(name, {CPU: -number})
    return quota.could_take(mine, {CPU: cores})
