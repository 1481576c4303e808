"""The quota tree against a plain reading of its rules, which sums everything again for each question."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.queues import Limited, cluster_queue, cohort, hold_usage, limited, queues
from shoal.engine.queues.facts import ClusterQueueFacts, CohortFacts, Quota
from shoal.engine.queues.quota_tree import CohortNode, lowest_that_fits
from shoal.engine.queues.state import Queues

FR = ("default", "chips")
NO_QUOTA = Quota(0)


@dataclass
class Plain:
    """The same tree as facts only; what is used stands at the leaves."""

    parents: dict[str, str]
    quotas: dict[str, Quota]
    used: dict[str, int] = field(default_factory=dict)

    def below(self, name: str) -> list[str]:
        return [child for child, parent in self.parents.items() if parent == name]

    def subtree(self, name: str) -> int:
        return self.quotas[name].nominal + sum(self.subtree(child) - self.kept(child) for child in self.below(name))

    def kept(self, name: str) -> int:
        lending = self.quotas[name].lending
        return 0 if lending is None else max(0, self.subtree(name) - lending)

    def use(self, name: str) -> int:
        """At a cohort: what its children could not serve from what they keep."""
        return self.used.get(name, 0) + sum(max(0, self.use(child) - self.kept(child)) for child in self.below(name))

    def path(self, name: str) -> list[str]:
        parent = self.parents[name]
        return [name, *(self.path(parent) if parent else [])]

    def is_within_limits(self, name: str) -> bool:
        for each in self.path(name):
            borrowing = 0 if not self.parents[each] else self.quotas[each].borrowing
            if borrowing is not None and self.use(each) > self.subtree(each) + borrowing:
                return False
        return True

    def could_use(self, name: str, amount: int) -> bool:
        before = self.used.get(name, 0)
        self.used[name] = before + amount
        fits = self.is_within_limits(name)
        self.used[name] = before
        return fits

    def lowest(self, name: str, amount: int) -> str:
        """The lowest node whose own quota holds everything once the amount is used; the root if none does."""
        before = self.used.get(name, 0)
        self.used[name] = before + amount
        path = self.path(name)
        found = next((each for each in path if self.use(each) <= self.subtree(each)), path[-1])
        self.used[name] = before
        return found


@dataclass
class Pair:
    world: Queues
    plain: Plain
    leaves: list[str]

    def node(self, name: str) -> CohortNode:
        return self.world.cluster_queues[name] if name in self.world.cluster_queues else self.world.cohorts[name]

    def add(self, name: str, amount: int) -> None:
        self.node(name).add(FR, amount)
        self.plain.used[name] = self.plain.used.get(name, 0) + amount

    def remove(self, name: str, amount: int) -> None:
        self.node(name).remove(FR, amount)
        self.plain.used[name] -= amount

    def check_use(self) -> None:
        for name in self.plain.parents:
            assert self.node(name).usage.get(FR, 0) == self.plain.use(name), name


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Up to four cohorts and five queues, each somewhere below the first cohort or alone."""
    inner = [f"c{index}" for index in range(draw(st.integers(0, 4)))]
    leaves = [f"q{index}" for index in range(draw(st.integers(1, 5)))]
    parents = {name: draw(st.sampled_from(["", *inner[:index]])) for index, name in enumerate(inner)}
    parents |= {name: draw(st.sampled_from(["", *inner])) for name in leaves}
    amounts, limits = st.integers(0, 12), st.none() | st.integers(0, 12)
    facts: list[ClusterQueueFacts | CohortFacts] = []
    quotas = {}
    for name, parent in parents.items():
        nominal, borrow, lend = draw(amounts), draw(limits) if parent else None, draw(limits) if parent else None
        quotas[name] = Quota(nominal, borrow, lend)
        chips = limited(nominal, borrow, lend)
        if name in inner:
            facts.append(cohort(name, parent=parent, chips=chips))
        else:
            facts.append(cluster_queue(name, cohort=parent, chips=chips))
    return Pair(queues(*facts), Plain(parents, quotas), leaves)


@given(pairs(), st.data())
def test_available_is_the_most_that_keeps_every_limit_on_the_way_up(pair: Pair, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(0, 6))):
        name = data.draw(st.sampled_from(pair.leaves))
        pair.add(name, data.draw(st.integers(0, pair.node(name).available(FR))))
    pair.check_use()
    for name in pair.leaves:
        most = pair.node(name).available(FR)
        assert most >= 0
        assert pair.plain.could_use(name, most)
        assert not pair.plain.could_use(name, most + 1)


@given(pairs())
def test_potential_is_what_an_empty_tree_would_give(pair: Pair) -> None:
    for name in pair.leaves:
        most = pair.node(name).potential(FR)
        assert most == pair.node(name).available(FR)
        assert pair.plain.could_use(name, most)
        assert not pair.plain.could_use(name, most + 1)


@given(pairs(), st.data())
def test_what_is_removed_in_any_order_leaves_no_trace(pair: Pair, data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.tuples(st.sampled_from(pair.leaves), st.integers(0, 20)), max_size=6))
    for name, amount in steps:
        pair.add(name, amount)
        pair.check_use()
    for name, amount in data.draw(st.permutations(steps)):
        pair.remove(name, amount)
        pair.check_use()
    assert all(pair.node(name).usage.get(FR, 0) == 0 for name in pair.plain.parents)


@given(pairs(), st.data())
def test_an_over_used_tree_gives_nothing_until_the_debt_is_paid(pair: Pair, data: st.DataObject) -> None:
    """Quotas may be cut below use."""
    name = data.draw(st.sampled_from(pair.leaves))
    pair.add(name, pair.node(name).available(FR) + data.draw(st.integers(1, 30)))
    assert pair.node(name).available(FR) <= 0
    assert not pair.plain.is_within_limits(name)


@given(pairs(), st.data())
@settings(max_examples=examples(80))
def test_the_borrowing_level_is_the_height_of_the_lowest_node_that_holds_it(pair: Pair, data: st.DataObject) -> None:
    for name in pair.leaves:
        pair.add(name, data.draw(st.integers(0, 15)))
    name = data.draw(st.sampled_from(pair.leaves))
    amount = data.draw(st.integers(1, 30))
    level, is_part = lowest_that_fits(pair.node(name), FR, amount)
    lowest = pair.plain.lowest(name, amount)
    assert is_part == (
        bool(pair.plain.parents[lowest])
        and pair.plain.use(lowest) + _bubbled(pair, name, lowest, amount) <= pair.plain.subtree(lowest)
    )
    assert level == (0 if lowest == name else pair.node(lowest).height)  # type: ignore[attr-defined]


def _bubbled(pair: Pair, name: str, upto: str, amount: int) -> int:
    """How much of an amount used at a leaf reaches a node above."""
    plain = pair.plain
    before, plain_before = plain.used.get(name, 0), plain.use(upto)
    plain.used[name] = before + amount
    reached = plain.use(upto) - plain_before
    plain.used[name] = before
    return reached


def test_a_queue_alone_has_its_own_and_no_more() -> None:
    world = queues(cluster_queue("alone", chips=10))
    hold_usage(world, "alone", chips=4)
    alone = world.cluster_queues["alone"]
    assert (alone.available(FR), alone.potential(FR)) == (6, 10)
    assert lowest_that_fits(alone, FR, 20) == (0, False)


@pytest.mark.parametrize(
    ("mine", "others", "available"),
    [
        (limited(5), limited(10), 15),
        (limited(5, borrow=3), limited(10), 8),
        (limited(5), limited(10, lend=4), 9),
        (limited(5, borrow=3), limited(10, lend=2), 7),
        (limited(5, borrow=0), limited(10), 5),
        (limited(5), limited(10, lend=0), 5),
        (limited(5, lend=0), limited(10), 15),
    ],
)
def test_a_queue_gets_what_it_may_borrow_of_what_others_lend(mine: Limited, others: Limited, available: int) -> None:
    world = queues(cluster_queue("mine", cohort="all", chips=mine), cluster_queue("others", cohort="all", chips=others))
    assert world.cluster_queues["mine"].available(FR) == available


def test_a_lender_that_uses_its_own_takes_it_from_the_borrower() -> None:
    world = queues(cluster_queue("a", cohort="all", chips=5), cluster_queue("b", cohort="all", chips=5))
    hold_usage(world, "a", chips=8)
    assert world.cluster_queues["b"].available(FR) == 2
    assert world.cluster_queues["a"].borrows(FR)


def test_quota_that_was_cut_below_use_counts_as_debt() -> None:
    world = queues(cluster_queue("a", cohort="all", chips=5), cluster_queue("b", cohort="all", chips=5))
    hold_usage(world, "a", chips=8)
    world.put(cluster_queue("a", cohort="all", chips=1))
    world.refresh()
    assert world.cluster_queues["b"].available(FR) == -2


@pytest.mark.parametrize(("amount", "level", "is_part"), [(3, 0, True), (4, 1, True), (7, 2, False), (99, 2, False)])
def test_the_level_rises_with_the_request(amount: int, level: int, is_part: bool) -> None:
    world = queues(
        cohort("root", chips=10),
        cohort("team", parent="root", chips=2),
        cluster_queue("mine", cohort="team", chips=3),
        cluster_queue("mate", cohort="team", chips=1),
    )
    assert lowest_that_fits(world.cluster_queues["mine"], FR, amount) == (level, is_part)
