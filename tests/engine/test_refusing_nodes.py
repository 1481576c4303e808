"""A node whose kubelet refused a pod is not tried again until something is seen to change there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.events import NodeRefused
from shoal.engine.evidence import evidence
from shoal.engine.reasons import Code

GPU = ask().gpus(1)


def refused() -> Scenario:
    world = Scenario(node("n").gpus(8))
    world.bind("there", GPU, "n").bind("failed", GPU, "n")
    world.shape(GPU).refresh()
    return world.go("failed").apply(NodeRefused("n"))


def test_no_pod_goes_there_and_the_reason_is_said() -> None:
    world = refused().arrive("next", GPU)
    assert world.round().placed == []
    assert [cause.code for cause in evidence(world.cluster, GPU.made()).causes] == [Code.REFUSING]


CHANGES: dict[str, Callable[[Scenario], object]] = {
    "the node": lambda world: world.see(node("n").gpus(8).label("a", "b")),
    "a pod that another scheduler bound": lambda world: world.bind("foreign", GPU, "n"),
    "a pod that ended": lambda world: world.go("there"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_of_what_is_seen_of_it_ends_that(change: str) -> None:
    world = refused()
    CHANGES[change](world)
    world.arrive("next", GPU)
    assert [place.pod for place in world.round().placed] == ["next"]


def test_other_nodes_are_tried_meanwhile() -> None:
    world = refused().see(node("m").gpus(1)).arrive("next", GPU)
    assert [place.node for place in world.round().placed] == ["m"]


def test_a_node_that_left_and_came_back_is_tried() -> None:
    world = refused().lose("n").see(node("n").gpus(8)).arrive("next", GPU)
    assert [place.node for place in world.round().placed] == ["n"]
