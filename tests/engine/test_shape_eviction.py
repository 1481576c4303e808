"""Keys are kept for the asks used last; an ask whose keys gave way is answered all the same."""

from __future__ import annotations

import pytest

from build.nodes import fleet, node
from build.pods import ask
from build.scenario import Scenario

ROWS = 64
ASKS = [ask().cpu(cores).gpus(1) for cores in range(1, 13)]


def kept(world: Scenario) -> int:
    return len(world.placement._shapes)


@pytest.mark.parametrize(
    ("most_keys", "shapes"), [(0, 1), (ROWS, 1), (3 * ROWS, 3), (4 * ROWS - 1, 3), (99 * ROWS, 12)]
)
def test_no_more_keys_are_kept_than_allowed(most_keys: int, shapes: int) -> None:
    world = Scenario(*fleet(10, node("n").gpus(2)), most_keys=most_keys)
    for _ in range(2):
        for wanted in ASKS:
            assert world.choice(wanted) is not None
    assert kept(world) == shapes


def test_the_ask_unused_for_longest_gives_way() -> None:
    world = Scenario(*fleet(10, node("n").gpus(2)), most_keys=3 * ROWS)
    first = world.shape(ASKS[0])
    for wanted in (ASKS[1], ASKS[2], ASKS[0], ASKS[3]):
        world.shape(wanted)
    assert world.shape(ASKS[0]) is first
    assert kept(world) == 3


def test_answers_are_the_same_with_one_shape_as_with_many() -> None:
    worlds = [Scenario(*fleet(10, node("n").gpus(4)), most_keys=most) for most in (0, 1_000_000)]
    for index in range(60):
        for world in worlds:
            world.arrive(f"p{index}", ASKS[index * 7 % len(ASKS)])
            if index % 5 == 4:
                world.go(f"p{index - 4}")
        first, second = (world.round().intentions for world in worlds)
        assert first == second
    assert kept(worlds[0]) == 1


def test_a_fleet_that_grows_keeps_fewer_shapes() -> None:
    world = Scenario(*fleet(10, node("n").gpus(2)), most_keys=12 * ROWS)
    for wanted in ASKS:
        world.shape(wanted)
    assert kept(world) == 12
    world.see(*fleet(200, node("m").gpus(2)))
    world.shape(ask().cpu(13))
    assert kept(world) <= 3
