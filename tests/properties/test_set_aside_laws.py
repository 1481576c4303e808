"""Lines that are set aside because no node would do for them: no decision is another one for that."""

from __future__ import annotations

import random

import pytest

from build.depth import seeds
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.cycle import cycle
from shoal.engine.plan import Plan

NODES = ("m", "n")
Step = tuple[str, str, int, int, int]
KINDS = ["see", "lose", *["arrive"] * 6, *["go"] * 5]


def some_step(draw: random.Random) -> Step:
    kind = draw.choice([0, 0, 0, 1, 2, 3])
    return draw.choice(KINDS), draw.choice("abc"), draw.choice([1, 2, 3, 0]), kind, draw.choice([0, 0, 1])


def some_node(name: str, cores: int, kind: int) -> NodeBuilder:
    made = node(name).cpu(2 * cores).gpus(kind)
    return (made, made.label("zone", "x"), made.taint("only"), made.cordoned())[kind]


def some_ask(cores: int, kind: int) -> AskBuilder:
    made = ask().cpu(cores)
    return (made, made.select("zone", "In", "x"), made.tolerate("only"), made.gpus(1))[kind]


def take(world: Scenario, step: Step) -> None:
    what, key, first, second, priority = step
    if what == "see":
        world.see(some_node(NODES[priority % 2], first, second))
    elif what == "lose" and NODES[priority % 2] in world.cluster.row_of:
        world.lose(NODES[priority % 2])
    elif what == "arrive" and key not in world.cluster.pending and key not in world.cluster.pods:
        world.arrive(key, some_ask(2 * first, second), priority)
    elif what == "go" and (key in world.cluster.pending or key in world.cluster.pods):
        world.go(key)


def decided(world: Scenario, now_s: float, most: int | None = None) -> Plan:
    plan = cycle(world.cluster, world.placement, now_s=now_s, seed=0, most=most)
    world.confirm(plan)
    return plan


@pytest.mark.parametrize("seed", seeds(60))
def test_a_world_in_which_all_lines_are_looked_at_each_round_decides_the_same(seed: int) -> None:
    draw = random.Random(seed)
    world, other = Scenario(node("n").cpu(4)), Scenario(node("n").cpu(4))
    for now in range(40):
        step = some_step(draw)
        take(world, step)
        take(other, step)
        if other.cluster.rows:
            # As if its first node had changed.
            other.cluster.static_changes.append(0)
        assert decided(world, now).intentions == decided(other, now).intentions


def test_a_line_that_was_set_aside_is_looked_at_when_a_node_grows_and_when_one_comes() -> None:
    world = Scenario(node("n").cpu(2))
    world.arrive("large", ask().cpu(4)).arrive("larger", ask().cpu(8))
    assert len(decided(world, 0).refused) == 2
    assert world.cluster.pending.heads() == []
    world.see(node("n").cpu(4))
    assert [place.pod for place in decided(world, 1).placed] == ["large"]
    assert world.cluster.pending.heads() == []
    world.see(node("m").cpu(8))
    assert [place.pod for place in decided(world, 2).placed] == ["larger"]


def test_a_pod_behind_a_line_that_was_set_aside_is_refused_and_not_tried() -> None:
    world = Scenario(node("n").cpu(2))
    world.arrive("first", ask().cpu(4))
    decided(world, 0)
    world.arrive("second", ask().cpu(4)).arrive("small", ask().cpu(1))
    plan = decided(world, 1)
    assert [place.pod for place in plan.placed] == ["small"]
    assert [refused.pod for refused in plan.refused] == ["second"]
    assert world.cluster.pending.heads() == []
    assert world.waiting() == ["first", "second"]
