"""How full a node is, in kube-scheduler's own numbers: whole points, worked by hand in the tables below.

The node has 4 cores and 8 GiB; a pod with 1 core and 2 GiB is on it already.
"""

from __future__ import annotations

import random
from typing import get_args

import pytest

from build import kube
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.profile import Profile
from shoal.engine.scores.allocation import GPU, BalancedAllocation, ResourceAllocationScore, ShapePoint, Strategy
from shoal.engine.scores.rule import NodeScore

NODE = node("n").cpu(4).memory_gib(8)
THERE = ask().cpu(1).memory_gib(2)
MOST = ResourceAllocationScore("MostAllocated")
LEAST = ResourceAllocationScore("LeastAllocated")
GPU_HEAVY = (("cpu", 1), (GPU, 3))
BINPACK = (ShapePoint(0, 0), ShapePoint(100, 100))
SPREAD = (ShapePoint(0, 100), ShapePoint(100, 0))
ROOF = (ShapePoint(0, 0), ShapePoint(50, 100), ShapePoint(100, 20))


def ratio(
    *shape: ShapePoint, resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
) -> ResourceAllocationScore:
    return ResourceAllocationScore("RequestedToCapacityRatio", resources, shape)


BY_HAND: dict[str, tuple[NodeBuilder, AskBuilder, NodeScore, int]] = {
    "most: a quarter was used, half is": (NODE, ask().cpu(1).memory_gib(2), MOST, 50),
    "most: cores and memory count alike": (NODE, ask().cpu(3).memory_gib(0.8), MOST, (100 + 35) // 2),
    "most: the mean is rounded down": (NODE, ask().cpu(2).memory_gib(2.08), MOST, (75 + 51) // 2),
    "most: each resource is rounded down first": (NODE, ask().cpu(0.999).memory_gib(2), MOST, (49 + 50) // 2),
    "most: a pod without requests counts a tenth of a core and 200 MiB": (NODE, ask(), MOST, (27 + 27) // 2),
    "most: an explicit zero is zero": (NODE, ask().cpu(0).memory_gib(0), MOST, 25),
    "most: more than there is counts as all": (NODE, ask().cpu(9).memory_gib(9), MOST, 100),
    "least: three quarters were free, half is": (NODE, ask().cpu(1).memory_gib(2), LEAST, 50),
    "least: an empty pod": (NODE, ask(), LEAST, (72 + 72) // 2),
    "least: more than there is leaves nothing": (NODE, ask().cpu(9).memory_gib(6), LEAST, 0),
    "least: weights": (
        NODE,
        ask().cpu(1).memory_gib(4),
        ResourceAllocationScore("LeastAllocated", (("cpu", 3), ("memory", 1))),
        (50 * 3 + 25) // 4,
    ),
    "most: GPUs weigh three times as much as cores": (
        NODE.gpus(8),
        ask().cpu(1).gpus(4),
        ResourceAllocationScore("MostAllocated", GPU_HEAVY),
        (50 + 3 * 50) // 4,
    ),
    "most: a share counts as the part of a GPU that it is": (
        NODE.gpus(2),
        ask().cpu(1).share(500),
        ResourceAllocationScore("MostAllocated", GPU_HEAVY),
        (50 + 3 * 25) // 4,
    ),
    "most: a resource that the node lacks does not weigh": (
        NODE,
        ask().cpu(1),
        ResourceAllocationScore("MostAllocated", GPU_HEAVY),
        50,
    ),
    "most: GPUs do not weigh for a pod that asks for none": (
        NODE.gpus(8),
        ask().cpu(1),
        ResourceAllocationScore("MostAllocated", GPU_HEAVY),
        50,
    ),
    "most: an extended resource does not weigh for a pod that asks for none": (
        NODE.resource("example.com/fpga", 4),
        ask().cpu(1),
        ResourceAllocationScore("MostAllocated", (("cpu", 1), ("example.com/fpga", 1))),
        50,
    ),
    "most: an extended resource weighs for a pod that asks for it": (
        NODE.resource("example.com/fpga", 4),
        ask().cpu(1).resource("example.com/fpga", 3),
        ResourceAllocationScore("MostAllocated", (("cpu", 1), ("example.com/fpga", 1))),
        (50 + 75) // 2,
    ),
    "ratio: a straight line up is MostAllocated": (NODE, ask().cpu(1).memory_gib(2), ratio(*BINPACK), 50),
    "ratio: a straight line down is LeastAllocated": (NODE, ask().cpu(2).memory_gib(2), ratio(*SPREAD), 38),
    "ratio: beyond the roof points fall": (NODE, ask().cpu(2).memory_gib(4), ratio(*ROOF), 60),
    "ratio: before the first corner its points hold": (
        NODE,
        ask().cpu(1).memory_gib(2),
        ratio(ShapePoint(60, 70), ShapePoint(100, 0)),
        70,
    ),
    "ratio: after the last corner its points hold": (
        NODE,
        ask().cpu(3).memory_gib(6),
        ratio(ShapePoint(0, 0), ShapePoint(40, 80)),
        80,
    ),
    "ratio: the mean is rounded to the nearest": (NODE, ask().cpu(2).memory_gib(2), ratio(*BINPACK), 63),
    "ratio: a resource without points does not weigh": (
        NODE,
        ask().cpu(3).memory_gib(2),
        ratio(ShapePoint(50, 0), ShapePoint(100, 100)),
        100,
    ),
    "ratio: more than there is counts as full": (NODE, ask().cpu(9).memory_gib(9), ratio(*BINPACK), 100),
    "balanced: equal fractions are perfect": (NODE, ask().cpu(1).memory_gib(2), BalancedAllocation(), 100),
    "balanced: half the difference is lost": (NODE, ask().cpu(3).memory_gib(2), BalancedAllocation(), 75),
    "balanced: overcommitted fractions count as one": (NODE, ask().cpu(9).memory_gib(2), BalancedAllocation(), 75),
    "balanced: a pod without requests changes nothing": (NODE, ask(), BalancedAllocation(), 100),
    "balanced: three resources by their deviation": (
        NODE.gpus(8),
        ask().cpu(1).memory_gib(2).gpus(8),
        BalancedAllocation((("cpu", 1), ("memory", 1), (GPU, 1))),
        76,
    ),
    "balanced: one resource is always balanced": (NODE, ask().cpu(3), BalancedAllocation((("cpu", 1),)), 100),
    "balanced: GPUs do not count for a pod that asks for none": (
        NODE.gpus(8),
        ask().cpu(1).memory_gib(2),
        BalancedAllocation((("cpu", 1), ("memory", 1), (GPU, 1))),
        100,
    ),
    "a node with nothing to score gets nothing": (NODE.cpu(0).memory_gib(0), ask(), MOST, 0),
}


@pytest.mark.parametrize(("there", "wanted", "score", "points"), BY_HAND.values(), ids=BY_HAND)
def test_points_worked_by_hand(there: NodeBuilder, wanted: AskBuilder, score: NodeScore, points: int) -> None:
    world = Scenario(there).bind("already", THERE, "n")
    if there.allocatable["cpu"] == 0:
        world.go("already")
    assert world.points(score, wanted) == {"n": points}


def test_a_strategy_over_a_resource_nobody_ever_named_scores_the_others() -> None:
    world = Scenario(NODE).bind("already", THERE, "n")
    strategy = ResourceAllocationScore("MostAllocated", (("cpu", 1), ("example.com/never-seen", 1)))
    world.shape(ask().cpu(1))
    assert world.points(strategy, ask().cpu(1)) == {"n": 50}


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_any_mixture_has_the_points_that_the_one_node_rule_gives(strategy: Strategy) -> None:
    random_ = random.Random(3)
    curve = ROOF if strategy == "RequestedToCapacityRatio" else ()
    corners = [(corner.utilization, corner.points) for corner in curve]
    for _ in range(40):
        weights = random_.randrange(1, 4), random_.randrange(1, 4), random_.randrange(1, 4)
        names = ("cpu", "memory", GPU)
        score = ResourceAllocationScore(strategy, tuple(zip(names, weights, strict=True)), curve)
        nodes, on_them = random_fleet(random_)
        wanted = ask().resource("cpu", random_.randrange(1, 9000)).resource("memory", random_.randrange(1, 1 << 34))
        wanted = wanted.gpus(random_.randrange(1, 4))
        world = Scenario(*nodes)
        for name, held in on_them.items():
            world.bind(f"on-{name}", held, name)
        for name, resources in states(nodes, on_them, wanted, weights).items():
            present = [resource for resource in resources if resource[0] > 0]
            match strategy:
                case "MostAllocated":
                    expected = kube.most_allocated(present)
                case "LeastAllocated":
                    expected = kube.least_allocated(present)
                case "RequestedToCapacityRatio":
                    expected = kube.requested_to_capacity_ratio(present, corners)
            assert world.points(score, wanted)[name] == expected, (resources, wanted)


def test_balance_of_any_mixture_has_the_points_that_the_one_node_rule_gives() -> None:
    random_ = random.Random(4)
    for round_ in range(60):
        names = ("cpu", "memory", GPU)[: 2 + round_ % 2]
        score = BalancedAllocation(tuple((name, 1) for name in names))
        nodes, on_them = random_fleet(random_)
        wanted = (
            ask().resource("cpu", random_.randrange(1, 90) * 100).resource("memory", random_.randrange(1, 64) << 28)
        )
        wanted = wanted.gpus(random_.randrange(1, 4))
        world = Scenario(*nodes)
        for name, held in on_them.items():
            world.bind(f"on-{name}", held, name)
        for name, resources in states(nodes, on_them, wanted, (1, 1, 1)).items():
            present = [resource for resource in resources[: len(names)] if resource[0] > 0]
            assert world.points(score, wanted)[name] == kube.balanced(present), resources


def random_fleet(random_: random.Random) -> tuple[list[NodeBuilder], dict[str, AskBuilder]]:
    """A few nodes and one pod on each."""
    nodes = [
        node(f"n{index}")
        .cpu(random_.choice([4, 10, 16]))
        .memory_gib(random_.choice([8, 10]))
        .gpus(random_.randrange(5))
        for index in range(4)
    ]
    on_them = {
        there.name: ask().cpu(random_.randrange(1, 8) / 2).memory_gib(random_.randrange(1, 8)) for there in nodes
    }
    return nodes, on_them


def states(
    nodes: list[NodeBuilder], on_them: dict[str, AskBuilder], wanted: AskBuilder, weights: tuple[int, int, int]
) -> dict[str, list[kube.Resource]]:
    """Per node (allocatable, used with the pod, weight) of cpu, memory and GPU compute."""
    result = {}
    for there in nodes:
        held, new = on_them[there.name].made(), wanted.made()
        totals = there.allocatable["cpu"], there.allocatable["memory"], 1000 * there.gpu_count
        used = (
            held.request("cpu") + new.request("cpu"),
            held.request("memory") + new.request("memory"),
            held.gpu_milli + new.gpu_milli,
        )
        result[there.name] = list(zip(totals, used, weights, strict=True))
    return result


def test_a_profile_of_weighted_scores_takes_the_node_with_the_highest_sum() -> None:
    fuller, emptier = node("fuller").cpu(8).memory_gib(8), node("emptier").cpu(8).memory_gib(8)
    for weights, winner in {(3, 1): "fuller", (1, 3): "emptier"}.items():
        scores = tuple(zip((MOST, LEAST), weights, strict=True))
        world = Scenario(emptier, fuller, policy=lambda _, scores=scores: Profile("mine", node_scores=scores))  # type: ignore[misc]
        world.bind("old", ask().cpu(4).memory_gib(4), "fuller")
        assert world.choice(ask().cpu(1).memory_gib(1)) == (winner, ())
