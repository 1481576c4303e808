"""Shares: weights only ever lower them, use only ever raises them, and what follows from that for turns."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.obeying import played
from build.plain_quota import COHORT, PlainQuota
from build.queue_stories import ONE, Bounds, Explanation
from build.queue_worlds import stories
from build.queues import cluster_queue, cohort, queues, workload
from shoal.engine.queues.facts import FlavorResource, PreemptionRules
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.shares import less, share_of
from shoal.engine.queues.state import Queues

WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 8.0])


def nodes_of(queues: Queues) -> dict[str, CohortNode]:
    return {**queues.cluster_queues, **{COHORT + name: node for name, node in queues.cohorts.items()}}


def plain_ratio(quota: PlainQuota, name: str, resources: set[str], known: set[FlavorResource]) -> Fraction:
    """What is borrowed of a resource, over what the parent could give of it if nobody used anything."""
    ratios = [Fraction(0)]
    for resource in resources:
        frs = [fr for fr in known if fr[1] == resource]
        borrowed = sum(max(0, quota.use(name, fr) - quota.subtree(name, fr)) for fr in frs)
        lendable = sum(quota.potential(quota.parents[name], fr) for fr in frs)
        if borrowed and lendable:
            ratios.append(Fraction(borrowed * 1000, lendable))
    return max(ratios)


@settings(max_examples=examples(20), deadline=None)
@given(stories(Bounds(queues=4, arrivals=3)))
def test_a_share_is_what_is_borrowed_over_what_could_be_lent(story: Explanation) -> None:
    world = played(story)
    world.kueue.queues.refresh()
    quota = world.quota
    for name, node in nodes_of(world.kueue.queues).items():
        share = share_of(node)
        if node.parent is None:
            assert (share.ratio, share.borrows) == (0.0, False)
            continue
        known = {fr for fr in node.root.subtree if fr in node.subtree}
        elsewhere = {fr for fr in node.root.subtree if fr[1] in {resource for _, resource in known}}
        expected = plain_ratio(quota, name, {resource for _, resource in known}, known | elsewhere)
        counted = sum(max(0, quota.use(name, fr) - quota.subtree(name, fr)) for fr in known)
        assert share.borrows == (counted > 0)
        if all(quota.use(name, fr) == 0 for fr in elsewhere - known):
            assert abs(Fraction(share.ratio) - expected) < Fraction(1, 10**6)


@settings(max_examples=examples(20), deadline=None)
@given(stories(Bounds(arrivals=2)), WEIGHTS, WEIGHTS)
def test_a_larger_weight_never_gives_a_larger_share(story: Explanation, one: float, other: float) -> None:
    small, large = sorted((one, other))
    world = played(story)
    world.kueue.queues.refresh()
    for node in nodes_of(world.kueue.queues).values():
        node.weight = small
        before = share_of(node)
        node.weight = large
        after = share_of(node)
        assert not less(before, after)
        assert after.weighted <= before.weighted


@settings(max_examples=examples(20), deadline=None)
@given(stories(Bounds(arrivals=2)), st.integers(0, 9), st.integers(1, 3), st.integers(0, 9))
def test_more_use_never_gives_a_smaller_share(story: Explanation, which: int, amount: int, what: int) -> None:
    """To nobody on the way up; and nobody else's share moves."""
    world = played(story)
    queues = world.kueue.queues
    queues.refresh()
    if not queues.cluster_queues:
        return
    nodes = nodes_of(queues)
    queue = list(queues.cluster_queues.values())[which % len(queues.cluster_queues)]
    fr = sorted(queue.subtree)[what % len(queue.subtree)]
    before = {name: share_of(node) for name, node in nodes.items()}
    foreseen = share_of(queue, {fr: amount})
    queue.add(fr, amount)
    above = {queue, *queue.path_up()}
    for name, node in nodes.items():
        if node in above:
            assert not less(share_of(node), before[name])
        else:
            assert share_of(node) == before[name]
    assert share_of(queue) == foreseen


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.5, 1.0, 2.0, 4.0]), st.integers(0, 9)), min_size=2, max_size=4),
    st.integers(1, 12),
    st.booleans(),
)
def test_of_equal_demands_the_larger_weight_never_ends_up_with_less(
    members: list[tuple[float, int]], cores: int, preempts: bool
) -> None:
    """A cycle takes one of each queue, so a larger weight shows where the last room is given away; where queues may
    take from each other, it also shows in who is left in peace."""
    rules = PreemptionRules(reclaim="Any") if preempts else PreemptionRules()
    names = [f"q{index}" for index in range(len(members))]
    facts = [
        cluster_queue(name, cohort="all", weight=weight, rules=rules, chips=0)
        for name, (weight, _) in zip(names, members, strict=True)
    ]
    kueue = Kueue(queues(cohort("all", chips=cores), *facts, settings=Settings(fair_sharing=True)))
    for name, (_, created) in zip(names, members, strict=True):
        for number in range(cores):
            kueue.put_workload(workload(f"{name}-{number}", name, chips=1, created=created + number), 0)
    kueue.run(0)
    got = {name: len(kueue.queues.cluster_queues[name].held) for name in names}
    assert sum(got.values()) == cores
    for one, (weight, _) in zip(names, members, strict=True):
        for other, (other_weight, _) in zip(names, members, strict=True):
            assert weight <= other_weight or got[one] >= got[other]
            assert weight != other_weight or abs(got[one] - got[other]) <= 1


@settings(max_examples=examples(20), deadline=None)
@given(stories(Bounds(cohorts=1, shapes=(ONE,), fair=True, units=True, changes=False, arrivals=4)))
def test_whoever_takes_by_fair_sharing_had_less_than_whom_it_took_from(story: Explanation) -> None:
    """In equal steps, and where it takes nothing from its own queue, which would lower its share first."""
    world = played(story)
    world.let_go()
    before = {name: share_of(node).key for name, node in world.kueue.queues.cluster_queues.items()}
    preempted = world.cycle().preempted
    own = {each.beneficiary for each in preempted if each.reason != "InCohortFairSharing"}
    for each in preempted:
        if each.beneficiary in own:
            continue
        victim, taker = world.holding[each.workload], world.waiting[each.beneficiary]
        mine = world.queue_of(taker)
        assert victim.admission is not None
        assert mine is not None
        assert before[mine.name] < before[victim.admission.cluster_queue]
