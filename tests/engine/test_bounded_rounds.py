"""A round that places so many pods at most: the rounds together come to what one round alone would."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.gangs import gang
from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.cycle import cycle
from shoal.engine.plan import Plan, Refuse


def bounded(world: Scenario, most: int) -> list[Plan]:
    """Rounds until one is not cut."""
    plans: list[Plan] = []
    while not plans or plans[-1].is_cut:
        assert len(plans) < 1_000
        plans.append(cycle(world.cluster, world.placement, now_s=0.0, seed=0, most=most))
    return plans


def test_a_round_places_no_more_than_it_may_and_says_that_there_is_more() -> None:
    world = Scenario(node("n").gpus(8))
    for index in range(5):
        world.arrive(f"p{index}", ask().gpus(1))
    plans = bounded(world, 2)
    assert [len(plan.placed) for plan in plans] == [2, 2, 1]
    assert [plan.is_cut for plan in plans] == [True, True, False]


def test_whoever_was_not_tried_yet_is_not_refused() -> None:
    world = Scenario(node("n").gpus(2))
    for index in range(3):
        world.arrive(f"p{index}", ask().gpus(1))
    first, second = bounded(world, 2)
    assert not first.refused
    assert second.intentions == (Refuse("p2", second.refused[0].code),)


def test_a_gang_that_goes_beyond_is_placed_whole() -> None:
    world = Scenario(node("n").gpus(8))
    gang("train").pods(6).gpus(1).arrive(world)
    plan = bounded(world, 2)[0]
    assert len(plan.placed) == 6


def test_nominations_that_are_only_made_again_keep_no_pod_from_being_placed() -> None:
    world = Scenario(node("busy").gpus(4))
    for index in range(4):
        world.bind(f"ends{index}", ask().gpus(1), "busy", (index,), terminating=True)
        world.arrive(f"nominated{index}", ask().gpus(1), 10)
    assert len([each for plan in bounded(world, 2) for each in plan.nominated]) >= 4
    world.see(node("free").gpus(2).taint("only-low"))
    for index in range(2):
        world.arrive(f"low{index}", ask().gpus(1).tolerate("only-low"))
    plan = bounded(world, 2)[0]
    assert [each.pod for each in plan.placed] == ["low0", "low1"]


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=14), st.integers(1, 5))
def test_rounds_in_pieces_come_to_what_one_round_comes_to(pods: list[tuple[int, int]], most: int) -> None:
    worlds = []
    for _ in range(2):
        world = Scenario(node("a").gpus(8), node("b").gpus(8))
        for index, (gpus, priority) in enumerate(pods):
            world.arrive(f"p{index}", ask().gpus(gpus), priority)
        worlds.append(world)
    whole = cycle(worlds[0].cluster, worlds[0].placement, now_s=0.0, seed=0)
    pieces = bounded(worlds[1], most)
    assert [place for plan in pieces for place in plan.placed] == whole.placed
    assert {each.pod for plan in pieces for each in plan.refused} == {each.pod for each in whole.refused}
