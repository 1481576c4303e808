"""Laws of the scores that read one node's record in plain integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.nodes import node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import NodeFacts, NodeSeen, PodBound
from shoal.engine.intake import Intake
from shoal.engine.queues.disciplines.kai.node_preferences import NodeDensity
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT
from shoal.engine.queues.disciplines.volcano.node_scores import volcano_profile
from shoal.engine.request_classes import RequestClass
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


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.sampled_from([0, 1, 1 << 40, 1 << 49, 1 << 50, 1 << 62, (1 << 63) - 1]), min_size=9, max_size=9))
def test_the_keys_of_a_changed_node_are_those_that_all_rows_give_also_with_huge_amounts(amounts: list[int]) -> None:
    cluster = Cluster()
    intake = Intake(cluster)
    for at in range(9):
        cores, memory, odd = amounts[at % 3 * 3 : at % 3 * 3 + 3]
        plain = {"cpu": cores, "memory": memory, "pods": 9, "example.com/odd": odd}
        intake.apply(NodeSeen(NodeFacts(f"n{at}", plain)))
    asked = Ask(requests=(("cpu", 1), ("example.com/odd", 1), ("memory", 1)))
    profile, charge = volcano_profile(DEFAULT), cluster.charge(asked)
    with np.errstate(all="ignore"):
        kept = RequestClass(cluster, profile, charge)
        kept.refresh()
        for at in range(3):
            intake.apply(PodBound(f"p{at}", asked, f"n{at}"))
        assert kept.keys().tolist() == RequestClass(cluster, profile, charge).keys().tolist()
