"""Gangs that must be together make others yield where they may be, and nowhere else."""

from __future__ import annotations

from build.nodes import NodeBuilder, node
from build.yielding import Yielding, gpus
from shoal.engine.events import TopologySeen
from shoal.engine.groups import GangSubgroup, GroupFacts, TopologyFacts, TopologyRequirement

TWO, FOUR = gpus(2), gpus(4)
RACK = TopologyRequirement("t", required="rack")


def racks(*sizes: int) -> list[NodeBuilder]:
    """Racks of so many nodes of four GPUs: a0, a1, b0, ..."""
    return [
        node(f"{name}{index}").gpus(4).label("zone", "z").label("rack", name)
        for name, size in zip("abcdef", sizes, strict=False)
        for index in range(size)
    ]


def cluster_of(*sizes: int) -> Yielding:
    world = Yielding(*racks(*sizes))
    world.apply(TopologySeen(TopologyFacts("t", ("zone", "rack"))))
    return world


def test_a_gang_goes_to_the_rack_where_its_victims_are_cheapest() -> None:
    world = cluster_of(2, 2).gang("new", 2, priority=9, requirement=RACK)
    for name, priority in (("a0", 1), ("a1", 2), ("b0", 3), ("b1", 1)):
        world.runs(f"on-{name}", name, FOUR, priority)
    world.waits("new-0", FOUR, group="new").waits("new-1", FOUR, group="new")
    assert world.victims() == ["on-a0", "on-a1"]


def test_a_rack_that_cannot_hold_the_gang_is_left_alone() -> None:
    world = cluster_of(1, 1, 2).gang("new", 2, priority=9, requirement=RACK)
    for name, priority in (("a0", 1), ("b0", 1), ("c0", 5), ("c1", 5)):
        world.runs(f"on-{name}", name, FOUR, priority)
    world.waits("new-0", FOUR, group="new").waits("new-1", FOUR, group="new")
    assert world.victims() == ["on-c0", "on-c1"]


def test_a_gang_that_runs_grows_in_its_own_rack() -> None:
    world = cluster_of(2, 2).gang("g", 1, priority=9, requirement=RACK)
    world.runs("g-0", "a0", FOUR, 9, "g").runs("here", "a1", FOUR, 5)
    world.runs("there", "b0", FOUR, 1).runs("too", "b1", FOUR, 1)
    assert world.waits("g-1", FOUR, 9, "g").victims() == ["here"]


def test_each_part_makes_room_in_a_rack_of_its_own_choice() -> None:
    world = cluster_of(2, 2, 2)
    parts = (GangSubgroup("x", minimum=2, requirement=RACK), GangSubgroup("y", minimum=2, requirement=RACK))
    world.group(GroupFacts("new", 4, parts, priority=9))
    for name, priority in (("a0", 1), ("a1", 7), ("b0", 2), ("b1", 2), ("c0", 3), ("c1", 3)):
        world.runs(f"on-{name}", name, FOUR, priority)
    for part in "xy":
        for index in range(2):
            world.waits(f"new-{part}{index}", FOUR, 9, "new", part=part)
    assert world.victims() == ["on-b0", "on-b1", "on-c0", "on-c1"]


def test_a_gang_of_different_pods_makes_room_for_each() -> None:
    world = cluster_of(2).gang("new", 2, priority=9, requirement=RACK)
    world.runs("large", "a0", FOUR, 1).runs("small", "a1", TWO, 1)
    world.waits("new-0", FOUR, group="new").waits("new-1", TWO, group="new")
    assert world.victims() == ["large"]


def test_a_part_keeps_its_minimum_when_its_gang_has_pods_to_spare() -> None:
    world = cluster_of(2)
    world.group(GroupFacts("g", 2, (GangSubgroup("x", minimum=1), GangSubgroup("y", minimum=1)), priority=1))
    for pod, part in (("g-0", "x"), ("g-1", "y"), ("g-2", "y")):
        world.runs(pod, "a0", gpus(1), 1, "g", part=part)
    world.runs("p", "a1", FOUR, 9).runs("q", "a0", gpus(1), 9)
    assert world.waits("new", gpus(1), 5).victims() == ["g-2"]


def test_a_role_keeps_its_minimum_too() -> None:
    world = cluster_of(1)
    world.group(GroupFacts("g", 1, roles=(("chief", 1),), priority=1))
    world.runs("g-0", "a0", TWO, 1, "g", role="worker", since_s=1).runs(
        "g-1", "a0", TWO, 1, "g", role="chief", since_s=9
    )
    assert world.waits("new", TWO, 5).victims() == ["g-0"]
