"""What holds of every search for victims, and that a plain search finds the same ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from build.asking import holder, named, search, want_of
from build.depth import examples
from build.plain_victims import PlainSearch
from build.queues import cluster_queue, cohort, limited, queues
from shoal.engine.queues.facts import FlavorResource, PreemptionRules, Usage, WorkloadFacts
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.victims.search import PreemptionRequest

PRIORITIES = st.integers(-1, 2)
HELD = [{"cpu": 1}, {"cpu": 2}, {"cpu": 1, "memory": 1}, {"memory": 2}]
ASKED = [{"cpu": 1}, {"cpu": 2}, {"cpu": 3}, {"cpu": 2, "memory": 1}, {"cpu": 1, "memory": 0}]
SMALL = st.integers(0, 4)
MAYBE = st.none() | st.integers(0, 3)
STRATEGIES = st.sampled_from(
    [
        ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
        ("LessThanOrEqualToFinalShare",),
        ("LessThanInitialShare",),
    ]
)


@dataclass
class Question:
    facts: list[Fact]
    holders: list[WorkloadFacts]
    settings: Settings
    incoming: WorkloadFacts
    needs: frozenset[FlavorResource]
    stamp_s: float

    @property
    def world(self) -> Queues:
        return queues(*self.facts, *self.holders, settings=self.settings)

    def want(self, world: Queues) -> PreemptionRequest:
        assert self.incoming.admission is not None
        usage: Usage = {("default", name): amount for name, amount in self.incoming.admission.pod_sets[0].usage.items()}
        return want_of(
            world,
            self.incoming.admission.cluster_queue,
            usage,
            priority=self.incoming.priority,
            needs=self.needs,
            stamp_s=self.stamp_s,
        )


@st.composite
def rules(draw: st.DrawFn) -> PreemptionRules:
    return PreemptionRules(
        draw(st.sampled_from(["Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"])),
        draw(st.sampled_from(["Any", "LowerPriority", "Any", "Never"])),
        draw(st.sampled_from(["Never", "Never", "LowerPriority"])),
        draw(st.none() | PRIORITIES),
    )


@st.composite
def questions(draw: st.DrawFn, *, fair: bool) -> Question:
    """A small tree of cohorts, queues with few cores and gigabytes, and one workload that wants some."""
    facts: list[Fact] = [cohort("c0", cpu=draw(SMALL), memory=draw(SMALL))]
    cohorts = ["c0"]
    for index in range(1, draw(st.integers(1, 4))):
        weight = draw(st.sampled_from([0.0, 0.5, 1.0, 1.0]))
        parent = draw(st.sampled_from(cohorts))
        quota = limited(draw(SMALL), draw(MAYBE), draw(MAYBE))
        facts.append(cohort(f"c{index}", parent=parent, weight=weight, cpu=quota, memory=draw(SMALL)))
        cohorts.append(f"c{index}")
    names = [f"q{index}" for index in range(draw(st.integers(2, 5)))]
    facts += [
        cluster_queue(
            name,
            cohort=draw(st.sampled_from(cohorts)),
            rules=draw(rules()),
            weight=draw(st.sampled_from([0.0, 0.5, 1.0, 1.0])),
            cpu=limited(draw(SMALL), draw(MAYBE), draw(MAYBE)),
            memory=draw(SMALL),
        )
        for name in names
    ]
    holders = [
        holder(
            f"w{index}",
            draw(st.sampled_from(names)),
            draw(st.sampled_from(HELD)),
            priority=draw(PRIORITIES),
            at=draw(SMALL),
            created=draw(SMALL),
            evicted=draw(st.integers(0, 5)) == 0,
        )
        for index in range(draw(st.integers(3, 10)))
    ]
    asked = draw(st.sampled_from(ASKED))
    incoming = holder("incoming", draw(st.sampled_from(names)), asked, priority=draw(st.integers(0, 3)))
    short = frozenset(
        {("default", "cpu")} | ({("default", "memory")} if draw(st.booleans()) and "memory" in asked else set())
    )
    setting = Settings(fair_sharing=fair, fair_strategies=draw(STRATEGIES))
    return Question(facts, holders, setting, incoming, short, float(draw(SMALL)))


def plain(question: Question) -> PlainSearch:
    return PlainSearch(
        question.facts, question.holders, question.settings, question.incoming, question.needs, question.stamp_s
    )


def by_name(found: dict[str, str]) -> dict[str, str]:
    return {key.partition("/")[2]: reason for key, reason in found.items()}


@settings(max_examples=examples(40), deadline=None)
@given(questions(fair=False))
def test_classical_victims_are_those_of_the_plain_search(question: Question) -> None:
    world = question.world
    assert named(search(world, question.want(world))) == by_name(plain(question).classical())


@settings(max_examples=examples(40), deadline=None)
@given(questions(fair=True))
def test_fair_victims_are_those_of_the_plain_search(question: Question) -> None:
    world = question.world
    assert named(search(world, question.want(world))) == by_name(plain(question).fair())


@settings(max_examples=examples(40), deadline=None)
@given(st.booleans().flatmap(lambda fair: questions(fair=fair)))
def test_victims_make_room_and_none_of_them_in_vain(question: Question) -> None:
    world = question.world
    want = question.want(world)
    victims = search(world, want)
    if not victims:
        return
    for victim in victims:
        world.remove_usage(victim.held)
    assert _has_room(want)
    # Where the answer is one without borrowing, nobody is put back at the price of it.
    borrows = _borrows(want)
    for victim in victims if len(victims) > 1 else []:
        world.add_usage(victim.held)
        assert not _has_room(want) or _borrows(want) > borrows, f"{victim.held.key} need not have gone"
        world.remove_usage(victim.held)


@settings(max_examples=examples(40), deadline=None)
@given(st.booleans().flatmap(lambda fair: questions(fair=fair)))
def test_nobody_of_another_queue_yields_who_borrows_nothing_that_is_short(question: Question) -> None:
    world = question.world
    want = question.want(world)
    for victim in search(world, want):
        held = victim.held
        assert want.needs & held.usage.keys()
        assert held.queue is want.queue or any(held.queue.borrows(fr) for fr in want.needs)


@settings(max_examples=examples(30), deadline=None)
@given(st.booleans().flatmap(lambda fair: questions(fair=fair)))
def test_looking_at_more_than_quota_changes_no_victims_where_there_is_nothing_to_see(question: Question) -> None:
    world = question.world
    want = question.want(world)
    without = named(search(world, want))
    want.fits = lambda: True
    assert named(search(world, want)) == without


@settings(max_examples=examples(30), deadline=None)
@given(questions(fair=False))
def test_the_order_in_which_workloads_came_is_no_matter(question: Question) -> None:
    world = question.world
    found = named(search(world, question.want(world)))
    turned = replace(question, holders=question.holders[::-1])
    again = turned.world
    assert named(search(again, turned.want(again))) == found


def _has_room(want: PreemptionRequest) -> bool:
    return all(amount <= max(0, want.queue.available(fr)) for fr, amount in want.usage.items())


def _borrows(want: PreemptionRequest) -> bool:
    return any(want.queue.borrows_with(fr, amount) for fr, amount in want.usage.items())
