"""A pod that no node helps gets another one after longer and longer delays."""

from __future__ import annotations

import random

import pytest

from build.depth import seeds
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.repeated_provisioning import RepeatedProvisioning

WAITING = PlanningInput(pools=(), types={}, pods=(Pod(ObjectMeta(name="p", namespace="t")),))


def bought_in_a_day(seed: int, *, is_helped: bool) -> int:
    """The nodes for one pod; each starts after some minutes, or fails. With `is_helped` the pod runs on each for a
    while."""
    draw, repeated = random.Random(seed), RepeatedProvisioning()
    bought = 0
    now_s = 0.0
    while now_s < 24 * 3600:
        due_s = repeated.next_s(now_s)
        if repeated.applied(WAITING, now_s).forbidden:
            assert due_s is not None
            now_s = due_s
            continue
        repeated.note_claim(f"n{bought}", ["t/p"])
        repeated.note_started([], [f"n{bought}"], now_s)
        now_s += draw.uniform(30, 300)
        is_started = draw.random() < 0.9
        repeated.note_started([f"n{bought}"] if is_started else [], [], now_s)
        if is_started:
            bought += 1
            if is_helped:
                repeated.applied(PlanningInput(pools=(), types={}), now_s)
    return bought


@pytest.mark.parametrize("seed", seeds(10))
def test_the_nodes_for_a_pod_are_bounded_unless_it_gets_its_place(seed: int) -> None:
    assert bought_in_a_day(seed, is_helped=False) <= 2 + 4 + 48
    assert bought_in_a_day(seed, is_helped=True) > 200
