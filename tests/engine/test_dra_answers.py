"""What is remembered about claims: no more than allowed, and for as long as nothing changed."""

from __future__ import annotations

import pytest

from build.dra import asking, claim, device, own, pool, seen, shared, there_is, wants
from build.nodes import node
from build.scenario import Scenario
from shoal.engine.dra.requests import ClaimRef
from shoal.engine.dra_allocator import Allocator
from shoal.engine.events import ClaimGone
from shoal.engine.labels import Labels

NODES = [f"n{index}" for index in range(6)]
CONTENTS = [(own(wants(count)),) for count in (1, 2, 3, 4)]

Refs = tuple[ClaimRef, ...]


def allocator(most_answers: int) -> Allocator:
    """Node n0 has no device, n1 one, and so on."""
    there = Allocator(NODES, Labels(), most_answers=most_answers)
    pools = [pool(*(device(f"g{number}") for number in range(count)), at=name) for count, name in enumerate(NODES)]
    for piece in pools:
        there.put_slice(piece)
    there.put_set("gpus", frozenset(f"{piece.pool_key}/{each.name}" for piece in pools for each in piece.devices))
    return there


def kept(there: Allocator) -> int:
    return sum(map(len, there._answers.values()))


@pytest.mark.parametrize(("most", "contents"), [(0, 1), (6, 1), (11, 1), (12, 2), (17, 2), (1000, 4)])
def test_no_more_answers_are_kept_than_allowed_beside_those_of_the_claims_at_hand(most: int, contents: int) -> None:
    there = allocator(most)
    for refs in CONTENTS:
        for row in range(len(NODES)):
            there.finding(refs, row)
            assert kept(there) <= max(most, len(NODES))
    assert len(there._answers) == contents


def test_the_claims_longest_not_asked_about_give_way() -> None:
    there = allocator(3 * len(NODES))
    for asked in (0, 1, 2, 0, 3):
        for row in range(len(NODES)):
            there.finding(CONTENTS[asked], row)
    assert [[ref.own for ref in CONTENTS[index]] for index in (2, 0, 3)] == [list(each) for each in there._answers]


def test_answers_are_the_same_with_few_kept_as_with_many() -> None:
    few, many = allocator(0), allocator(1000)
    for refs in [*CONTENTS, *CONTENTS[::-1]]:
        assert [few.finding(refs, row) for row in range(6)] == [many.finding(refs, row) for row in range(6)]


def test_a_claim_told_of_again_as_it_was_is_no_news() -> None:
    world = Scenario(node("a"))
    for event in seen(pool(device("g0"), at="a")):
        world.apply(event)
    told = there_is("team/ours", claim(wants(1)))
    world.apply(told)
    asked = asking(shared("team/ours"), own(wants(1)))
    before = world.cluster.dra.version, world.cluster.dra.epoch(asked.claims)
    world.apply(told)
    assert (world.cluster.dra.version, world.cluster.dra.epoch(asked.claims)) == before
    world.apply(there_is("team/ours", claim(wants(2))))
    assert world.cluster.dra.version > before[0]


def test_a_claim_that_goes_is_news_once() -> None:
    world = Scenario(node("a")).apply(there_is("team/ours", claim(wants(1))))
    there = world.cluster.dra.version
    gone = world.apply(ClaimGone("team/ours")).cluster.dra.version
    assert gone > there
    assert world.apply(ClaimGone("team/ours")).cluster.dra.version == gone
