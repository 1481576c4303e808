"""Trees of three to five levels: division with priorities and use over time, minimum runtimes, against a plain second
implementation; and the laws of the shares."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from msgspec.structs import replace

from build.depth import seeds
from build.plain_fair_share import PlainTree, drawn_tree
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue, QueueTree
from shoal.engine.queues.disciplines.kai.min_runtime import preempt_min_runtime_s, reclaim_min_runtime_s

LEVELS = (3, 4, 5)


def tree_of(plain: PlainTree, factor: int = 1) -> QueueTree:
    """All three resources are alike; `factor` of a unit each."""

    def bound(amount: int | None) -> int | None:
        return None if amount is None else amount * factor

    queues = [
        FairQueue(
            queue.name,
            queue.parent,
            queue.priority,
            (bound(queue.quota),) * 3,
            (bound(queue.limit),) * 3,
            (queue.weight,) * 3,
            queue.preempt_s,
            queue.reclaim_s,
        )
        for queue in plain.queues.values()
    ]
    usage = {queue.name: (float(queue.usage),) * 3 for queue in plain.queues.values()}
    tree = QueueTree(queues, usage)
    for queue in plain.queues.values():
        tree.nodes[queue.name].requested = [queue.requested * factor] * 3
    return tree


def cases(count: int) -> list[tuple[int, int]]:
    return [(seed, levels) for levels in LEVELS for seed in seeds(count)]


@pytest.mark.parametrize(("seed", "levels"), cases(10))
@pytest.mark.parametrize("k", [0.0, 1.0, 2.5])
def test_every_queue_of_a_tree_has_the_share_of_the_plain_division(seed: int, levels: int, k: float) -> None:
    draw = Random(seed)
    plain = drawn_tree(draw, levels)
    total = draw.randrange(80)
    tree = tree_of(plain)
    tree.divide((total * 1000, total, total), k)
    cores = plain.shares(total, 1, Fraction(k))
    assert {name: node.fair_share[1] for name, node in tree.nodes.items()} == cores
    tree = tree_of(plain, 500)
    tree.divide((total * 500, total, total), k)
    gpus = tree_of_halves(plain).shares(total * 500, 1000, Fraction(k))
    assert {name: node.fair_share[0] for name, node in tree.nodes.items()} == gpus


def tree_of_halves(plain: PlainTree) -> PlainTree:
    """Amounts of half a GPU each, in thousandths."""
    found = PlainTree()
    for name, queue in plain.queues.items():
        found.queues[name] = type(queue)(
            **{
                **vars(queue),
                "quota": None if queue.quota is None else queue.quota * 500,
                "limit": None if queue.limit is None else queue.limit * 500,
                "requested": queue.requested * 500,
            }
        )
    return found


@pytest.mark.parametrize(("seed", "levels"), cases(10))
def test_the_shares_of_siblings_are_the_smaller_of_demand_and_what_their_parent_has(seed: int, levels: int) -> None:
    """Quotas are granted beyond that; a weight of 0 takes nothing of the rest."""
    draw = Random(seed)
    plain = drawn_tree(draw, levels)
    total = draw.randrange(80)
    tree = tree_of(plain)
    tree.divide((total * 1000, total, total))
    share = {name: node.fair_share[1] for name, node in tree.nodes.items()}
    for parent, amount in [("", total), *share.items()]:
        siblings = plain.children(parent)
        granted = {each.name: min(amount if each.quota is None else each.quota, each.most) for each in siblings}
        wanted = sum(each.most if each.weight else granted[each.name] for each in siblings)
        found = sum(share[each.name] for each in siblings)
        assert found == max(sum(granted.values()), min(amount, wanted)), parent
        assert all(granted[each.name] <= share[each.name] <= each.most for each in siblings)


@pytest.mark.parametrize(("seed", "levels"), cases(10))
def test_no_queue_of_a_lower_priority_has_a_part_of_the_rest_while_a_higher_one_wants_more(
    seed: int, levels: int
) -> None:
    draw = Random(seed)
    plain = drawn_tree(draw, levels)
    total = draw.randrange(80)
    tree = tree_of(plain)
    tree.divide((total * 1000, total, total))
    share = {name: node.fair_share[1] for name, node in tree.nodes.items()}
    for parent, amount in [("", total), *share.items()]:
        siblings = plain.children(parent)
        for low in siblings:
            beyond = share[low.name] - min(amount if low.quota is None else low.quota, low.most)
            unmet = [
                each for each in siblings
                if each.priority > low.priority and each.weight and share[each.name] < each.most
            ]  # fmt: skip
            # Rounding down in the higher band leaves less than one unit for each of its queues.
            assert beyond <= max(0, len(unmet) - 1) or not unmet


@pytest.mark.parametrize(("seed", "levels"), cases(6))
@pytest.mark.parametrize("what", ["weight", "quota", "request"])
def test_a_larger_weight_quota_or_request_of_a_leaf_and_its_ancestors_costs_the_leaf_nothing(
    seed: int, levels: int, what: str
) -> None:
    draw = Random(seed)
    plain = drawn_tree(draw, levels)
    total, leaf, more = draw.randrange(80), draw.choice(plain.leaves()), draw.randrange(1, 9)
    before, after = tree_of(plain), tree_of(plain)
    for node in after.nodes[leaf].path:
        facts = node.facts
        quota = tuple(None if each is None else each + more for each in facts.quota)
        weight = tuple(each + more for each in facts.weight)
        if what == "weight":
            node.facts = replace(facts, weight=weight)
        elif what == "quota":
            node.facts = replace(facts, quota=quota)
        else:
            node.requested = [amount + more for amount in node.requested]
    before.divide((0, total, 0))
    after.divide((0, total, 0))
    # Rounding down moves single units between bands and rounds, at each level.
    slack = sum(len(plain.children(name)) for name in ["", *plain.path(leaf)])
    assert after.nodes[leaf].fair_share[1] >= before.nodes[leaf].fair_share[1] - slack


@pytest.mark.parametrize(("seed", "levels"), cases(10))
def test_minimum_runtimes_are_found_on_the_tree_as_the_plain_way_finds_them(seed: int, levels: int) -> None:
    plain = drawn_tree(Random(seed), levels)
    nodes = tree_of(plain).nodes
    for victim in plain.leaves():
        assert preempt_min_runtime_s(nodes[victim]) == plain.preempt_s(victim)
        for claimant in plain.leaves():
            if claimant == victim:
                continue
            found = reclaim_min_runtime_s(nodes[claimant], nodes[victim])
            assert found == plain.reclaim_s(claimant, victim), (claimant, victim)
            by_option = reclaim_min_runtime_s(nodes[claimant], nodes[victim], of_victim=True)
            assert by_option == plain.reclaim_of_victim_s(victim)
