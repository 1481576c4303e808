"""The columns answer as the plain tree does, whatever the world."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.plain_tas import Plain
from build.tas import ANYWHERE, BLOCK, HOST, LEVELS, RACK, TasWorld, host, pods, preferred, required
from shoal.engine.queues.facts import PodSet
from shoal.engine.queues.tas.refusals import TopologyRefusal
from shoal.engine.queues.topology_facts import QueueNode, TopologyRequest


@st.composite
def worlds(draw: st.DrawFn) -> list[QueueNode]:
    places = draw(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 3)), min_size=1, max_size=9))
    return [
        host(f"b{block}-r{rack}-x{i}", draw(st.integers(0, 6)), draw(st.integers(0, 8)), gpu=draw(st.integers(0, 3)))
        for i, (block, rack) in enumerate(places)
    ]


@st.composite
def wishes(draw: st.DrawFn) -> TopologyRequest:
    level = draw(st.sampled_from([BLOCK, RACK, HOST]))
    requirement = draw(st.sampled_from([required(level), preferred(level), ANYWHERE]))
    if not requirement.unconstrained and draw(st.booleans()):
        lower = draw(st.sampled_from(LEVELS[LEVELS.index(level) :]))
        return type(requirement)(
            requirement.required, requirement.preferred, slice_level=lower, slice_size=draw(st.integers(1, 3))
        )
    return requirement


@pytest.mark.parametrize("levels", [LEVELS, (BLOCK, HOST), (HOST,)])
@given(nodes=worlds(), requirement=wishes(), slices=st.integers(1, 5), rest=st.integers(0, 2))
@settings(max_examples=examples(60), deadline=None)
def test_one_pod_set_goes_where_the_plain_tree_sends_it(
    levels: tuple[str, ...], nodes: list[QueueNode], requirement: TopologyRequest, slices: int, rest: int
) -> None:
    if not {requirement.required, requirement.preferred, requirement.slice_level} <= {"", *levels}:
        return
    workers = pods(slices * (requirement.slice_size or 1) + rest, topology=requirement)
    _compare(levels, nodes, workers, None)


@pytest.mark.parametrize("levels", [LEVELS, (BLOCK, HOST), (HOST,)])
@given(nodes=worlds(), requirement=wishes(), spare=st.integers(-1, 6), gpu=st.booleans(), leader=st.integers(1, 4))
@settings(max_examples=examples(120), deadline=None)
def test_a_leader_and_its_workers_go_where_the_plain_tree_sends_them(
    levels: tuple[str, ...], nodes: list[QueueNode], requirement: TopologyRequest, spare: int, gpu: bool, leader: int
) -> None:
    """So many workers that it matters how much room the leader costs."""
    if not {requirement.required, requirement.preferred, requirement.slice_level} <= {"", *levels}:
        return
    requirement = type(requirement)(
        requirement.required,
        requirement.preferred,
        requirement.unconstrained,
        "g",
        requirement.slice_level,
        requirement.slice_size,
    )
    each = {"gpu": 1} if gpu else {"cpu": 2000}
    pod_counts = (min(node.allocatable[name] // amount for name, amount in each.items()) for node in nodes)
    size = requirement.slice_size or 1
    slices = max(2, (sum(pod_counts) - spare) // size)
    _compare(
        levels,
        nodes,
        pods(slices * size, "workers", requirement, **each),
        pods(1, "leader", requirement, cpu=1000 * leader),
    )


def _compare(levels: tuple[str, ...], nodes: list[QueueNode], workers: PodSet, leader: PodSet | None) -> None:
    plain = Plain(levels, nodes).place(workers, leader)
    found = TasWorld(nodes, levels).place(*([leader] if leader else []), workers)
    if plain is None:
        assert isinstance(found, TopologyRefusal)
    else:
        spelt = {
            name: " ".join(f"{path[-1]}={count}" for path, count in sorted(leaves.items()))
            for name, leaves in plain.items()
        }
        assert found == spelt
