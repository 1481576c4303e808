"""Where a gang goes: all of it or nothing, and as close together as it wishes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from build.company import apart
from build.gangs import GroupBuilder, gang, in_racks, racks
from build.nodes import NodeBuilder, node
from build.pods import ask
from build.scenario import Scenario


def places(world: Scenario, name: str = "g") -> list[str]:
    """The nodes of the gang's pods, in the order of the pods."""
    placed = world.placed()
    keys = sorted((key for key in placed if key.startswith(f"{name}-")), key=lambda key: int(key.rsplit("-", 1)[1]))
    return [placed[key] for key in keys]


def racks_of(nodes: list[str]) -> list[str]:
    return sorted({name.rsplit("n", 1)[0] for name in nodes})


@dataclass(frozen=True)
class Case:
    nodes: list[NodeBuilder]
    gang: GroupBuilder
    goes: list[str]
    """Nodes of its pods, each as often as it has pods; in any order."""
    taken: tuple[tuple[str, int], ...] = ()
    """GPUs that others hold."""


G = gang("g")

CASES: dict[str, Case] = {
    "a required rack: the tightest that has room for all": Case(
        racks(1, 1, 1), G.pods(4).gpus(1).required("rack"), ["r1n0"] * 4, (("r0n0", 1), ("r1n0", 4))
    ),
    "of equal racks the one with the first node": Case(
        racks(2, 2), G.pods(4).gpus(8).minimum(2).required("rack"), ["r0n0", "r0n1"]
    ),
    "a required rack: of the block with the least room before the tightest of another block": Case(
        [*racks(1, 1, 1, block="a", first="a"), *racks(1, 1, block="b", first="b")],
        G.pods(2).gpus(2).required("rack"),
        ["br0n0"] * 2,
        (("ar0n0", 4), ("ar1n0", 2), ("br1n0", 6)),
    ),
    "inside the rack as few nodes as possible, the largest first": Case(
        racks(3), G.pods(10).gpus(1).required("rack"), ["r0n1"] * 8 + ["r0n2"] * 2, (("r0n0", 5), ("r0n2", 6))
    ),
    "of nodes that take all that is left, the tightest": Case(
        racks(3), G.pods(3).gpus(1).required("rack"), ["r0n2"] * 3, (("r0n1", 2), ("r0n2", 5))
    ),
    "a required block: inside it as few racks as possible": Case(
        racks(1, 2, 1), G.pods(3).gpus(8).required("block"), ["r1n0", "r1n1", "r0n0"]
    ),
    "a preferred rack that has the room": Case(racks(1, 2), G.pods(2).gpus(8).preferred("rack"), ["r1n0", "r1n1"]),
    "a preferred rack that nobody has: one block, as few racks as possible": Case(
        [*racks(1, 1, 1, 1, block="a", first="a"), *racks(2, 2, block="b", first="b")],
        G.pods(3).gpus(8).preferred("rack"),
        ["br0n0", "br0n1", "br1n0"],
    ),
    "a preferred block that nobody has: the largest first, the tightest for the rest": Case(
        [
            *racks(1, block="a", zone="y", first="a"),
            *racks(3, block="b", zone="y", first="b"),
            *racks(2, block="c", zone="x", first="c"),
        ],
        G.pods(5).gpus(8).preferred("block"),
        ["br0n0", "br0n1", "br0n2", "cr0n0", "cr0n1"],
    ),
    "a preferred rack inside a required block": Case(
        [*racks(2, block="a", first="a"), *racks(1, 2, block="b", first="b")],
        G.pods(3).gpus(8).preferred("rack").required("block"),
        ["br0n0", "br1n0", "br1n1"],
    ),
    "the closest level that fits, at most the required": Case(
        [*racks(1, 1, block="a", first="a"), *racks(2, block="b", first="b")],
        G.pods(2).gpus(8).closest("zone"),
        ["br0n0", "br0n1"],
    ),
    "no rack is large enough, so the closest is a block": Case(
        [*racks(1, 1, block="a", first="a"), *racks(1, block="b", first="b")],
        G.pods(2).gpus(8).closest("zone"),
        ["ar0n0", "ar1n0"],
    ),
    "without a limit the closest may be anywhere": Case(
        [*racks(1, zone="x", block="a", first="a"), *racks(1, zone="y", block="b", first="b")],
        G.pods(2).gpus(8).closest(),
        ["ar0n0", "br0n0"],
    ),
    "nodes without the label are no place for what must stay together": Case(
        [node("alone").gpus(8), node("lone").gpus(8), *racks(2)], G.pods(2).gpus(8).required("rack"), ["r0n0", "r0n1"]
    ),
    "nodes without the label come last for what would like to": Case(
        [node("alone").gpus(8), *racks(1, 1)], G.pods(3).gpus(8).preferred("rack"), ["r0n0", "r1n0", "alone"]
    ),
    "every slice stays in one rack": Case(
        racks(1, 3, 3), G.pods(4).gpus(8).slices("rack", 2), ["r1n0", "r1n1", "r2n0", "r2n1"]
    ),
    "slices inside a required block": Case(
        [*racks(1, 1, 1, 1, block="a", first="a"), *racks(2, 2, block="b", first="b")],
        G.pods(4).gpus(8).slices("rack", 2).required("block"),
        ["br0n0", "br0n1", "br1n0", "br1n1"],
    ),
    "a smaller last slice stays together as well": Case(
        racks(3, 1, 1, 2), G.pods(5).gpus(8).slices("rack", 3), ["r0n0", "r0n1", "r0n2", "r3n0", "r3n1"]
    ),
    "every part in a rack of its own wish, the gang in one block": Case(
        [*racks(3, 1, block="a", first="a"), *racks(2, 2, block="b", first="b")],
        G.part("p", 2, required="rack")
        .part("q", 2, required="rack")
        .pods(2, ask().gpus(8), part="p")
        .pods(2, ask().gpus(8), part="q")
        .required("block"),
        ["br0n0", "br0n1", "br1n0", "br1n1"],
    ),
    "the smaller part does not take the only rack of the larger": Case(
        racks(2, 3),
        G.part("p", 2, required="rack")
        .part("q", 3, required="rack")
        .pods(2, ask().gpus(8), part="p")
        .pods(3, ask().gpus(8), part="q"),
        ["r0n0", "r0n1", "r1n0", "r1n1", "r1n2"],
    ),
    "pods that keep apart go to a rack with enough nodes, however much room a smaller one has": Case(
        racks(2, 3),
        G.labelled(app="g").pods(3, ask().gpus(1).near(apart("host", app="g"))).required("rack"),
        ["r1n0", "r1n1", "r1n2"],
    ),
    "pods with a port of their own as well": Case(
        racks(2, 3), G.pods(3, ask().gpus(1).port(80)).required("rack"), ["r1n0", "r1n1", "r1n2"]
    ),
    "pieces of GPUs that do not add up: the next rack": Case(
        racks(1, 2, gpus=1), G.pods(3, ask().share(400)).required("rack"), ["r1n0", "r1n0", "r1n1"]
    ),
    "a large pod is not shut out by small ones before it": Case(
        racks(1, 1), G.pods(2).gpus(2).pods(1).gpus(8), ["r0n0", "r0n0", "r1n0"], (("r0n0", 4),)
    ),
    "a pod with few nodes to choose from is not shut out by equals": Case(
        [node("a").gpus(1).label("disk", "fast"), node("b").gpus(1)],
        G.pods(1).gpus(1).pods(1, ask().gpus(1).select("disk", "In", "fast")),
        ["a", "b"],
    ),
    "a small pod with few nodes goes before a large one that would take them": Case(
        [node("a").gpus(4).label("disk", "fast"), node("b").gpus(4)],
        G.pods(2).gpus(4).minimum(2).pods(1, ask().gpus(1).select("disk", "In", "fast")).minimum(2),
        ["a", "b"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_where_a_gang_goes(case: Case) -> None:
    world = in_racks(*case.nodes)
    for there, count in case.taken:
        world.bind(f"other-{there}", ask().gpus(count), there)
    case.gang.arrive(world)
    world.round()
    assert sorted(places(world)) == sorted(case.goes)
