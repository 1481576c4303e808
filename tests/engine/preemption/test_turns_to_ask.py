"""Whose turn it is to ask others for room."""

from __future__ import annotations

from build.nodes import node
from build.yielding import Yielding, gpus
from shoal.engine.preemption.preemptor import Preemptor
from shoal.engine.preemption.preemptors import preemptors_in_order

PODS = 200


def test_a_line_of_pods_that_may_not_ask_is_looked_through_once() -> None:
    world = Yielding(node("n").gpus(8))
    for index in range(PODS):
        world.waits(f"p{index:03}", gpus(1), preempts=index % 2 == 1)
    looked: list[str] = []
    asked: list[str] = []

    def may_ask(claim: Preemptor) -> bool:
        looked.append(claim.name)
        return claim.preempts

    def ask(claim: Preemptor) -> bool:
        asked.append(claim.name)
        world.go(claim.name)
        return True

    preemptors_in_order(world.cluster, ask, may_ask=may_ask)
    assert asked == [f"p{index:03}" for index in range(1, PODS, 2)]
    assert len(looked) < 3 * PODS
