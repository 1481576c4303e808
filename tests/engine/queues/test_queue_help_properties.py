"""Of every remedy: it is true, none of it is larger than need be, and asking leaves no trace."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.asking import holder
from build.depth import examples
from build.helped import KEY, Help, asked, one_less, portrait
from build.queues import (
    cluster_queue,
    cohort,
    flavor,
    limited,
    quotas,
    workload,
)
from shoal.api.taints import Taint
from shoal.engine.queues.facts import Fungibility, PodSet, PreemptionRules
from shoal.engine.queues.remedies import Effect, RemedyKind, remedies
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact

GPU = "nvidia.com/gpu"
SMALL = st.integers(0, 4)
MAYBE = st.none() | st.integers(0, 3)
PRIORITIES = st.integers(-1, 2)
FLAVORS = ("one", "two")


@st.composite
def rules(draw: st.DrawFn) -> PreemptionRules:
    return PreemptionRules(
        draw(st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
        draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
        draw(st.sampled_from(["Never", "LowerPriority"])),
        draw(st.none() | PRIORITIES),
    )


@st.composite
def fungibilities(draw: st.DrawFn) -> Fungibility:
    return Fungibility(
        draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
        draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
        draw(st.sampled_from(["", "BorrowingOverPreemption", "PreemptionOverBorrowing"])),
    )


@st.composite
def waits(draw: st.DrawFn) -> Help:
    """A small tree with one or two flavors, some who hold quota, and one workload that wants some."""
    names = FLAVORS[: draw(st.integers(1, 2))]
    taints = [Taint("spot", "NoSchedule", "yes")] if draw(st.booleans()) else []
    facts: list[Fact] = [flavor("one", {"model": "one"}), flavor("two", {"model": "two"}, taints)]
    cohorts = ["c0"]
    facts.append(cohort("c0", *(quotas(name, gpu=draw(SMALL), memory=draw(SMALL)) for name in names)))
    for index in range(1, draw(st.integers(1, 3))):
        quota = [quotas(name, gpu=limited(draw(SMALL), draw(MAYBE), draw(MAYBE))) for name in names]
        facts.append(cohort(f"c{index}", *quota, parent=draw(st.sampled_from(cohorts))))
        cohorts.append(f"c{index}")
    lines = [f"q{index}" for index in range(draw(st.integers(1, 4)))]
    for line in lines:
        groups = [
            quotas(name, gpu=limited(draw(SMALL), draw(MAYBE), draw(MAYBE)), memory=draw(SMALL)) for name in names
        ]
        in_cohort = draw(st.sampled_from([*cohorts, *cohorts, ""]))
        facts.append(
            cluster_queue(line, *groups, cohort=in_cohort, rules=draw(rules()), fungibility=draw(fungibilities()))
        )
    holders = [
        holder(
            f"w{index}",
            draw(st.sampled_from(lines)),
            draw(st.sampled_from([{"gpu": 1}, {"gpu": 3}, {"gpu": 1, "memory": 1}, {"memory": 2}])),
            draw(st.sampled_from(names)),
            priority=draw(PRIORITIES),
            created=draw(SMALL),
        )
        for index in range(draw(st.integers(0, 6)))
    ]
    incoming = workload("incoming", draw(st.sampled_from(lines)), *draw(pod_sets()), priority=draw(PRIORITIES))
    setting = Settings(
        fair_sharing=draw(st.booleans()),
        usage_half_life_s=draw(st.sampled_from([None, 60.0])),
        reservations=draw(st.booleans()),
    )
    return Help(facts, holders, incoming, setting)


@st.composite
def pod_sets(draw: st.DrawFn) -> list[PodSet]:
    return [
        PodSet(
            f"set{index}",
            draw(st.integers(1, 4)),
            draw(st.none() | st.just(1)) if index == 0 else None,
            draw(st.sampled_from([{GPU: 1}, {GPU: 2}, {GPU: 1, "memory": 1}])),
            selector=draw(st.sampled_from([{}, {}, {"model": "one"}, {"model": "two"}])),
        )
        for index in range(draw(st.integers(1, 2)))
    ]


@settings(max_examples=examples(40), deadline=None)
@given(waits())
def test_every_remedy_does_what_it_says_and_nothing_less_does(waiting: Help) -> None:
    order = list(Effect)
    for remedy in asked(waiting):
        assert waiting.after(remedy.changes).effect() is remedy.effect, remedy
        for less in one_less(remedy):
            effect = waiting.after(less).effect()
            assert effect is None or order.index(effect) > order.index(remedy.effect), (remedy, less)


@settings(max_examples=examples(40), deadline=None)
@given(waits(), st.booleans())
def test_asking_leaves_everything_as_it_was_bit_for_bit(waiting: Help, looked_at: bool) -> None:
    kueue = waiting.kueue()
    if looked_at:
        kueue.cycle(0.0)
    before = portrait(kueue)
    first = remedies(kueue, KEY)
    assert portrait(kueue) == before
    assert remedies(kueue, KEY) == first
    if not looked_at:
        assert repr(kueue.cycle(0.0)) == repr(waiting.kueue().cycle(0.0))


@settings(max_examples=examples(40), deadline=None)
@given(waits())
def test_with_quota_everybody_can_be_helped(waiting: Help) -> None:
    """Together with what keeps its pods off the flavors."""
    kinds = {each.kind for each in asked(waiting)}
    assert kinds & {RemedyKind.TURN, RemedyKind.QUOTA, RemedyKind.FLAVOR}
