"""Other schedulers' placement strategies, by the figures their formulas give."""

from __future__ import annotations

import pytest

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.scores.rule import NodeScore
from shoal.engine.scores.strategies import FINEST, Packed, PerResource, Spread, WeightedBinpack

GPU = "nvidia.com/gpu"


def _points(score: NodeScore, world: Scenario, wanted: object) -> dict[str, int]:
    return world.points(score, wanted)  # type: ignore[arg-type]


def _fleet() -> Scenario:
    world = Scenario(node("full").gpus(4), node("half").gpus(4), node("large").gpus(8), node("none"))
    world.bind("a", ask().gpus(3), "full").bind("b", ask().gpus(2), "half").bind("c", ask().gpus(2), "large")
    return world


def test_packing_prefers_the_node_with_fewest_free_devices_whatever_its_size() -> None:
    points = _points(Packed(GPU), _fleet(), ask().gpus(1))
    assert points["full"] > points["half"] > points["large"] > points["none"] == 0


def test_spreading_prefers_the_node_with_the_largest_free_part() -> None:
    points = _points(Spread(GPU), _fleet(), ask().gpus(1))
    assert points == {"full": FINEST // 4, "half": FINEST // 2, "large": FINEST * 3 // 4, "none": 0}


def test_weighted_packing_is_the_weighted_mean_of_how_full_the_asked_resources_would_be() -> None:
    world = Scenario(node("n1").cpu(4).memory_gib(16))
    points = _points(WeightedBinpack((("cpu", 1), ("memory", 3))), world, ask().cpu(2).memory_gib(4))
    assert points["n1"] == (FINEST * 2 // 4 + 3 * FINEST * 4 // 16) // 4


def test_weighted_packing_gives_nothing_where_one_resource_would_not_fit() -> None:
    world = Scenario(node("n1").cpu(4).memory_gib(16)).bind("a", ask().cpu(3), "n1")
    points = _points(WeightedBinpack((("cpu", 1), ("memory", 3))), world, ask().cpu(2).memory_gib(4))
    assert points["n1"] == 0


@pytest.mark.parametrize(("kind", "part"), [("MostAllocated", 3), ("LeastAllocated", 1)])
def test_each_resource_may_have_its_own_strategy(kind: str, part: int) -> None:
    world = Scenario(node("n1").gpus(4)).bind("a", ask().gpus(2), "n1")
    points = _points(PerResource(((GPU, kind, 2),)), world, ask().gpus(1))
    assert points["n1"] == FINEST * part // 4


@pytest.mark.parametrize("kind", ["MostAllocated", "LeastAllocated"])
def test_a_strategy_gives_nothing_where_one_resource_would_not_fit(kind: str) -> None:
    world = Scenario(node("n1").cpu(4).gpus(4)).bind("a", ask().cpu(4), "n1")
    points = _points(PerResource(((GPU, kind, 1), ("cpu", kind, 1))), world, ask().cpu(1).gpus(1))
    assert points["n1"] == 0


def test_packing_tells_large_nodes_apart_by_a_thousandth_of_a_core() -> None:
    world = Scenario(node("n1").cpu(20_000), node("n2").cpu(20_000)).bind("a", ask().cpu(0.001), "n2")
    points = _points(Packed("cpu"), world, ask().cpu(1))
    assert points["n2"] == points["n1"] + 1


def test_a_strategy_for_resources_nobody_asks_for_gives_no_points() -> None:
    assert PerResource((("cpu", "MostAllocated", 1),)).compiled(Scenario().cluster, ask().gpus(1).made()) is None
