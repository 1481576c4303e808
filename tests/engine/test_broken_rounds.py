"""A step that breaks in the middle of a round: nothing of the round is left, and the next one decides it all again."""

from __future__ import annotations

import pytest

from build.gangs import gang
from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.engine.cycle import STEPS, cycle
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.plan import Plan


def _breaks(_round: CycleState) -> None:
    raise KeyError("one odd fact")


def _decide(world: Scenario, *steps: Step) -> Plan:
    return cycle(world.cluster, world.placement, now_s=0.0, seed=0, steps=steps)


def _world() -> Scenario:
    """Two places, two pods and a gang that want them, a pod that yields, and one that outranks it."""
    world = Scenario(node("a").gpus(2), node("b").gpus(2).label("zone", "b"))
    world.bind("low", ask().gpus(2), "b", devices=(0, 1), priority=-1)
    world.arrive("p", ask().gpus(1))
    world.arrive("high", ask().gpus(2), 10)
    gang("train").pods(2).gpus(1).arrive(world)
    return world


@pytest.mark.parametrize("number", range(len(STEPS) + 1))
def test_a_round_that_breaks_before_any_step_or_after_all_leaves_no_trace(number: int) -> None:
    world = _world()
    before = facts_of(world.cluster)
    with pytest.raises(KeyError):
        _decide(world, *STEPS[:number], _breaks)
    assert facts_of(world.cluster) == before


def test_the_round_after_one_that_broke_decides_as_if_it_had_not_been() -> None:
    broken, whole = _world(), _world()
    with pytest.raises(KeyError):
        _decide(broken, *STEPS, _breaks)
    plans = [_decide(world, *STEPS) for world in (broken, whole)]
    assert plans[0].intentions == plans[1].intentions
    assert plans[1].placed
    assert plans[1].evicted


def test_whoever_joined_before_a_round_that_broke_is_refused_in_the_next() -> None:
    world = Scenario(node("a").gpus(1))
    world.arrive("large", ask().gpus(8))
    with pytest.raises(KeyError):
        _decide(world, *STEPS, _breaks)
    assert [refused.pod for refused in _decide(world, *STEPS).refused] == ["large"]
