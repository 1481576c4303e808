"""Which flavor is taken: what quota leaves, what preemption would give, and what the queue would rather do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.flavors import NO_CANDIDATES, PREEMPT, RECLAIM, Oracle, choose, only_flavor, pods, shared
from build.queues import cluster_queue, group, hold_usage, queues, quotas
from shoal.engine.queues.facts import Fungibility, NextFlavor
from shoal.engine.queues.flavors.modes import Mode, PreemptionPossibility
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues

STOP: NextFlavor = "MayStopSearch"
GO_ON: NextFlavor = "TryNextFlavor"
LIKES_PREEMPTION = Fungibility(GO_ON, GO_ON, "PreemptionOverBorrowing")
ALWAYS_LOOKS = Fungibility(GO_ON, GO_ON)


BORROWS, FULL, FREE, NEVER = (0, 9, 0), (5, 5, 10), (5, 0, 0), (0, 0, 0)
"""A flavor that fits by borrowing, one where others would have to yield, one with room, one without quota."""
TABLE: dict[str, tuple[list[tuple[int, int, int]], Fungibility, dict[str, PreemptionPossibility], str | None]] = {
    "the first that fits": ([NEVER, FREE, FREE], ALWAYS_LOOKS, {}, "f1"),
    "none": ([NEVER, NEVER], ALWAYS_LOOKS, {}, None),
    "borrowing ends the search": ([BORROWS, FREE], Fungibility(), {}, "f0"),
    "borrowing does not, if told so": ([BORROWS, FREE], ALWAYS_LOOKS, {}, "f1"),
    "borrowing in the first, if nothing is better": ([BORROWS, BORROWS, FULL], ALWAYS_LOOKS, {}, "f0"),
    "preempting does not end the search": ([FULL, FREE], Fungibility(), {}, "f1"),
    "preempting ends it, if told so": ([FULL, FREE], Fungibility(STOP, STOP), {}, "f0"),
    "having no candidates to preempt never does": ([FULL, FREE], Fungibility(STOP, STOP), {"f0": NO_CANDIDATES}, "f1"),
    "preempting the first, if nothing is better": ([FULL, FULL, NEVER], Fungibility(), {}, "f0"),
    "preempting while borrowing goes on, if told so": (
        [FULL, FREE],
        Fungibility(GO_ON, STOP),
        {"f0": PreemptionPossibility(Mode.PREEMPT, 1)},
        "f1",
    ),
    "what ends the search is taken, whatever was passed on the way": (
        [BORROWS, FULL],
        Fungibility(GO_ON, STOP),
        {},
        "f1",
    ),
    "reclaiming before preempting": ([FULL, FULL], Fungibility(), {"f0": PREEMPT, "f1": RECLAIM}, "f1"),
    "preempting before having no candidates": ([FULL, FULL], Fungibility(), {"f0": NO_CANDIDATES}, "f1"),
    "the one without candidates before none": ([NEVER, FULL], Fungibility(), {"f1": NO_CANDIDATES}, "f1"),
    "of two with nobody the one that borrows less": (
        [FULL, FULL],
        Fungibility(),
        {"f0": PreemptionPossibility(Mode.NO_CANDIDATES, 1), "f1": NO_CANDIDATES},
        "f1",
    ),
    "borrowing before preempting": ([FULL, BORROWS], ALWAYS_LOOKS, {}, "f1"),
    "preempting before borrowing, if told so": ([FULL, BORROWS], LIKES_PREEMPTION, {}, "f0"),
    "preempting later before borrowing, if told so": ([BORROWS, FULL], LIKES_PREEMPTION, {}, "f1"),
    "but not having no candidates before borrowing": ([FULL, BORROWS], LIKES_PREEMPTION, {"f0": NO_CANDIDATES}, "f1"),
    "of equal borrowing the better mode": (
        [FULL, FULL],
        LIKES_PREEMPTION,
        {"f0": PreemptionPossibility(Mode.PREEMPT, 1), "f1": PreemptionPossibility(Mode.RECLAIM, 1)},
        "f1",
    ),
    "less borrowing before a better mode": (
        [FULL, FULL],
        LIKES_PREEMPTION,
        {"f0": PreemptionPossibility(Mode.RECLAIM, 1), "f1": PreemptionPossibility(Mode.PREEMPT, 0)},
        "f1",
    ),
    "by default a better mode before less borrowing": (
        [FULL, FULL],
        ALWAYS_LOOKS,
        {"f0": PreemptionPossibility(Mode.PREEMPT, 0), "f1": PreemptionPossibility(Mode.RECLAIM, 1)},
        "f1",
    ),
}


@pytest.mark.parametrize(("flavors", "fungibility", "answers", "chosen"), TABLE.values(), ids=TABLE)
def test_the_flavor_taken_is(
    flavors: list[tuple[int, int, int]],
    fungibility: Fungibility,
    answers: dict[str, PreemptionPossibility],
    chosen: str | None,
) -> None:
    found = choose(shared(*flavors, fungibility=fungibility), "q", pods(cpu=5), oracle=Oracle(answers))
    assert only_flavor(found) == chosen


@given(
    st.lists(st.sampled_from([BORROWS, FREE, NEVER, FULL]), min_size=1, max_size=4),
    st.data(),
    st.booleans(),
)
def test_a_search_through_all_flavors_takes_the_first_of_the_best(
    flavors: list[tuple[int, int, int]], data: st.DataObject, likes_preemption: bool
) -> None:
    answer = st.builds(
        PreemptionPossibility, st.sampled_from([Mode.NO_CANDIDATES, Mode.PREEMPT, Mode.RECLAIM]), st.integers(0, 2)
    )
    answers = {f"f{index}": data.draw(answer) for index in range(len(flavors))}
    world = shared(*flavors, fungibility=LIKES_PREEMPTION if likes_preemption else ALWAYS_LOOKS)
    by_itself = {FREE: (Mode.FIT, 0), BORROWS: (Mode.FIT, 1), NEVER: (Mode.NO_FIT, 0)}
    suits = [by_itself.get(each, answers[f"f{index}"]) for index, each in enumerate(flavors)]

    def worth(index: int) -> tuple[int, int, int]:
        mode, borrow = suits[index]
        if mode <= Mode.NO_CANDIDATES or not likes_preemption:
            return (min(mode, 2), mode, -borrow)
        return (2, -borrow, mode)

    best = max(range(len(flavors)), key=worth)
    found = choose(world, "q", pods(cpu=5), oracle=Oracle(answers))
    assert only_flavor(found) == (None if suits[best][0] is Mode.NO_FIT else f"f{best}")


# Several resources


def of_two(fungibility: Fungibility, **used: int) -> Queues:
    """Flavors a and b, each with 5 cores and 5 chips; what is used of them is told as `a_cpu=5`."""
    world = queues(
        cluster_queue(
            "q", quotas("a", cpu=5, chips=5), quotas("b", cpu=5, chips=5), cohort="all", fungibility=fungibility
        ),
        cluster_queue("n", quotas("a", cpu=5, chips=5), quotas("b", cpu=5, chips=5), cohort="all"),
    )
    for word, amount in used.items():
        name, _, resource = word.partition("_")
        hold_usage(world, "q", name, **{resource: amount})
    return world


def test_resources_of_a_group_take_one_flavor_though_each_would_like_another() -> None:
    world = of_two(ALWAYS_LOOKS, a_cpu=5, b_chips=10)
    found = choose(world, "q", pods(cpu=5, chips=5))
    assert only_flavor(found) == "a"
    assert found.borrow == 1


def test_a_flavor_is_as_good_as_its_worst_resource() -> None:
    world = of_two(Fungibility(), a_cpu=10, b_chips=5)
    found = choose(world, "q", pods(cpu=1, chips=5))
    assert only_flavor(found) == "b"
    assert (found.mode, found.borrow) == (Mode.FIT, 1)


def test_only_resources_that_do_not_fit_need_others_to_yield() -> None:
    world = of_two(Fungibility(GO_ON, STOP), a_cpu=10)
    found = choose(world, "q", pods(cpu=1, chips=1))
    assert found.to_preempt == {("a", "cpu")}
    assert found.usage == {("a", "cpu"): 1000, ("a", "chips"): 1}


def test_a_resource_that_never_fits_rules_the_flavor_out_whatever_the_others_say() -> None:
    found = choose(of_two(Fungibility(STOP, STOP), a_cpu=10), "q", pods(cpu=1, chips=11))
    assert (found.mode, found.why) == (Mode.NO_FIT, Wait.EXCEEDS_MAX_QUOTA)


@pytest.mark.parametrize("order", [("small", "full"), ("full", "small")])
def test_it_waits_for_what_the_flavor_that_came_closest_lacks(order: tuple[str, str]) -> None:
    own = {"small": 1, "full": 0}
    world = queues(
        cluster_queue("q", *(quotas(name, cpu=own[name]) for name in order), cohort="all"),
        cluster_queue("n", quotas("full", cpu=5), cohort="all"),
    )
    hold_usage(world, "n", "full", cpu=5)
    assert choose(world, "q", pods(cpu=3)).why is Wait.QUOTA
    assert choose(world, "q", pods(cpu=6)).why is Wait.EXCEEDS_MAX_QUOTA


@pytest.mark.parametrize("hopeless", ["a", "x"])
def test_of_two_groups_of_resources_the_one_that_is_worse_off_says_why_it_waits(hopeless: str) -> None:
    world = queues(cluster_queue("q", group(quotas("a", cpu=4)), group(quotas("x", chips=4))))
    hold_usage(world, "q", "a", cpu=4)
    hold_usage(world, "q", "x", chips=4)
    assert choose(world, "q", pods(cpu=1, chips=1)).why is Wait.VICTIMS
    assert choose(world, "q", pods(cpu=1, chips=1), oracle=Oracle({hopeless: NO_CANDIDATES})).why is Wait.QUOTA
