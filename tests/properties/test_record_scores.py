"""Laws of the scores that read one node's record in plain integers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.nodes import node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.queues.disciplines.kai.node_preferences import NodeDensity
from shoal.engine.scores.allocation import BalancedAllocation, ResourceAllocationScore
from shoal.engine.scores.rule import RecordScore
from shoal.engine.scores.strategies import WeightedBinpack

_RESOURCES = (("cpu", 2), ("memory", 1), ("nvidia.com/gpu", 5))
_SCORES: tuple[RecordScore, ...] = (
    ResourceAllocationScore(resources=_RESOURCES),
    ResourceAllocationScore("MostAllocated", _RESOURCES),
    BalancedAllocation(),
    BalancedAllocation(_RESOURCES),
    WeightedBinpack(_RESOURCES),
    NodeDensity(),
    NodeDensity(gpu_spread=True, cpu_spread=True),
)
_AMOUNTS = st.tuples(st.integers(0, 130), st.integers(0, 2000), st.integers(0, 8))


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(_AMOUNTS, _AMOUNTS), min_size=1, max_size=6), _AMOUNTS)
def test_the_points_of_one_record_are_those_of_all_rows_also_on_overcommitted_nodes(
    fleet: list[tuple[tuple[int, int, int], tuple[int, int, int]]], wanted: tuple[int, int, int]
) -> None:
    world = Scenario(
        *(node(f"n{at}").cpu(cpu).memory_gib(memory).gpus(gpus) for at, ((cpu, memory, gpus), _) in enumerate(fleet))
    )
    for at, (_, (cpu, memory, gpus)) in enumerate(fleet):
        world.bind(f"p{at}", _asked(cpu, memory, min(gpus, fleet[at][0][2])), f"n{at}")
    for score in _SCORES:
        if score.compiled(world.cluster, _asked(*wanted).made()) is not None:
            # It compares both.
            assert len(world.points(score, _asked(*wanted))) == len(fleet)


def _asked(cpu: int, memory: int, gpus: int) -> AskBuilder:
    asked = ask().cpu(cpu).memory_gib(memory)
    return asked.gpus(gpus) if gpus else asked
