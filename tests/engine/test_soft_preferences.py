"""What a pod would rather have: preferred affinity and soft taints weigh, and never keep anybody out."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask, named, term, where
from build.scenario import Scenario
from shoal.engine.scores.preferences import PreferredAffinity, SoftTaints

FAST = term(where("disk", "In", "ssd"))
NEAR = term(where("zone", "In", "a"))

AFFINITY: dict[str, tuple[NodeBuilder, AskBuilder, int]] = {
    "the only wish is met": (node("n").label("disk", "ssd"), ask().prefer(1, FAST), 100),
    "the only wish is not met": (node("n"), ask().prefer(100, FAST), 0),
    "a quarter of the weight is met": (node("n").label("zone", "a"), ask().prefer(75, FAST).prefer(25, NEAR), 25),
    "both wishes are met": (
        node("n").label("zone", "a").label("disk", "ssd"),
        ask().prefer(75, FAST).prefer(25, NEAR),
        100,
    ),
    "a third is rounded down": (node("n").label("zone", "a"), ask().prefer(2, FAST).prefer(1, NEAR), 33),
    "an empty wish is met nowhere": (node("n").label("zone", "a"), ask().prefer(50, term()).prefer(50, NEAR), 50),
    "a wish may name the node": (node("n"), ask().prefer(10, term(names=named("In", "n"))), 100),
}


@pytest.mark.parametrize(("there", "wanted", "points"), AFFINITY.values(), ids=AFFINITY)
def test_preferred_affinity(there: NodeBuilder, wanted: AskBuilder, points: int) -> None:
    assert Scenario(there).static_points(PreferredAffinity(), wanted) == {"n": points}


def soft(count: int) -> NodeBuilder:
    there = node("n")
    for index in range(count):
        there = there.taint(f"soft{index}", "PreferNoSchedule")
    return there


TAINTS: dict[str, tuple[NodeBuilder, AskBuilder, int]] = {
    "one soft taint": (soft(1), ask(), -25),
    "three soft taints": (soft(3), ask(), -75),
    "four are as bad as any number": (soft(9), ask(), -100),
    "a tolerated one does not count": (soft(2), ask().tolerate("soft0"), -25),
    "a hard taint is not for scores": (soft(1).taint("hard"), ask(), -25),
}


@pytest.mark.parametrize(("there", "wanted", "points"), TAINTS.values(), ids=TAINTS)
def test_soft_taints(there: NodeBuilder, wanted: AskBuilder, points: int) -> None:
    assert Scenario(there).static_points(SoftTaints(), wanted) == {"n": points}


def test_a_pod_without_wishes_and_a_fleet_without_soft_taints_cost_nothing() -> None:
    world = Scenario(node("n"))
    rows = world.cluster.all_rows()
    assert PreferredAffinity().points(world.cluster, ask().made(), rows) is None
    assert SoftTaints().points(world.cluster, ask().made(), rows) is None


def test_the_author_outweighs_the_fleet_and_gives_way_to_necessity() -> None:
    best_for_the_fleet = node("partly").gpus(1)
    wished = node("wished").gpus(8).label("disk", "ssd")
    world = Scenario(best_for_the_fleet, wished).bind("old", ask().share(500), "partly")
    assert world.choice(ask().share(500)) == ("partly", (0,))
    assert world.choice(ask().share(500).prefer(1, FAST)) == ("wished", (0,))
    world.see(node("wished").gpus(8).label("disk", "ssd").cordoned())
    assert world.choice(ask().share(500).prefer(1, FAST)) == ("partly", (0,))


def test_a_soft_taint_sends_pods_elsewhere_while_there_is_an_elsewhere() -> None:
    world = Scenario(soft(1), node("m"))
    assert world.choice(ask().cpu(1)) == ("m", ())
    assert world.choice(ask().cpu(1).tolerate("soft0")) == ("n", ())
    world.lose("m")
    assert world.choice(ask().cpu(1)) == ("n", ())


def test_wishes_are_weighed_again_when_labels_change() -> None:
    world = Scenario(node("n"), node("m"))
    wanted = ask().cpu(1).prefer(10, FAST)
    assert world.choice(wanted) == ("n", ())
    world.see(node("m").label("disk", "ssd"))
    assert world.choice(wanted) == ("m", ())
    world.see(node("m"), node("n").label("disk", "ssd"))
    assert world.choice(wanted) == ("n", ())


def test_a_soft_taint_first_seen_after_a_shape_exists_sends_pods_elsewhere_too() -> None:
    world = Scenario(node("n"), node("m"))
    assert world.choice(ask().cpu(1)) == ("n", ())
    world.see(node("m").taint("slow", "PreferNoSchedule"))
    assert world.choice(ask().cpu(1)) == ("n", ())
    world.see(node("n").taint("slow", "PreferNoSchedule").taint("slower", "PreferNoSchedule"))
    assert world.choice(ask().cpu(1)) == ("m", ())
