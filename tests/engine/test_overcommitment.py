"""Right before a pod is bound: is there still room for it, given all that is known of its node?"""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.ledger import Ledger
from shoal.engine.overcommitment import is_overcommitted

THERE = node("n").cpu(8).pods(3).gpus(4)
MIB = 40_000
CASES: dict[str, tuple[NodeBuilder, AskBuilder, AskBuilder, bool]] = {
    "devices enough for both": (THERE, ask().gpus(2), ask().gpus(2), False),
    "a device too few": (THERE, ask().gpus(2), ask().gpus(3), True),
    "devices too few, and none asked for": (THERE, ask().cpu(1), ask().gpus(5), False),
    "cores enough for both": (THERE, ask().cpu(4), ask().cpu(4), False),
    "cores too few": (THERE, ask().cpu(4), ask().cpu(5), True),
    "cores too few, and none asked for": (THERE, ask().gpus(1), ask().cpu(9), False),
    "a resource by name": (THERE.resource("x/y", 1), ask().resource("x/y", 1), ask().resource("x/y", 1), True),
    "parts of one device": (node("n").gpus(1), ask().share(500), ask().share(500), False),
    "more than one device in parts": (node("n").gpus(1), ask().share(500), ask().share(600), True),
    "replicas enough for both": (node("n").gpus(1).replicated(4), ask().gpus(2), ask().gpus(2), False),
    "replicas too few": (node("n").gpus(1).replicated(4), ask().gpus(2), ask().gpus(3), True),
}


def placed(there: NodeBuilder, ours: AskBuilder) -> Scenario:
    world = Scenario(there).arrive("ours", ours)
    assert world.round().placed
    return world


@pytest.mark.parametrize("is_heard", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_pod_that_another_scheduler_bound_counts_whether_the_facts_have_it_or_not(case: str, is_heard: bool) -> None:
    there, ours, theirs, expected = CASES[case]
    world = placed(there, ours)
    unheard = () if is_heard else (theirs.made(),)
    if is_heard:
        world.bind("theirs", theirs, "n")
    before = world.pieces("n")
    assert is_overcommitted(world.cluster, world.cluster.pods["ours"], unheard) == expected
    assert world.pieces("n") == before


def test_the_places_for_pods_are_counted() -> None:
    world = placed(THERE, ask())
    assert not is_overcommitted(world.cluster, world.cluster.pods["ours"], [ask().made()] * 2)
    assert is_overcommitted(world.cluster, world.cluster.pods["ours"], [ask().made()] * 3)


def test_what_is_promised_to_others_is_no_lack() -> None:
    world = (
        Scenario(THERE).bind("ends", ask().gpus(2).cpu(6), "n", terminating=True).arrive("ours", ask().gpus(2).cpu(2))
    )
    assert world.round().placed
    world.arrive("heir", ask().gpus(2).cpu(6))
    Ledger(world.cluster).place("heir", 0, world.cluster.pods["ends"].grant, nominated=True)
    assert not is_overcommitted(world.cluster, world.cluster.pods["ours"])
    assert is_overcommitted(world.cluster, world.cluster.pods["ours"], [ask().gpus(1).made()])
