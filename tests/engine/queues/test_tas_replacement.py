"""A node fails: its pods get another, the others stay."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from build.tas import BLOCK, HOST, LEVELS, RACK, TasWorld, hosts, pods, preferred, required, spelt
from shoal.engine.queues.facts import PodSet
from shoal.engine.queues.tas.levels_request import LAYERS
from shoal.engine.queues.tas.replace import replace
from shoal.engine.queues.topology_facts import SliceLayer, TopologyRequest

NODES = hosts("b1-r1-x1=1", "b1-r2-x2=1", "b1-r2-x3=1", "b1-r2-x4=1", "b2-r3-x5=1", "b2-r4-x6=2")


@dataclass(frozen=True)
class Case:
    was: str
    wants: PodSet
    failed: tuple[str, ...]
    now: str | None


CASES = {
    "anywhere near where it was, by preference": Case("gone=1", pods(1, topology=preferred(HOST)), ("gone",), "x1=1"),
    "in the required rack": Case("gone=1 x2=1", pods(2, topology=required(RACK)), ("gone",), "x2=1 x3=1"),
    "not in another rack": Case("gone=2 x1=1", pods(3, topology=required(RACK)), ("gone",), None),
    "never the failed node itself": Case("x6=1", pods(1, topology=required(RACK)), ("x6",), "x1=1"),
    "an incomplete slice stays in its rack": Case(
        "x2=4 x3=4",
        pods(8, topology=preferred(BLOCK, slice_level=RACK, slice_size=8), cpu=250),
        ("x2",),
        "x3=4 x4=4",
    ),
    "a whole slice may go to another rack, the tightest block first": Case(
        "x1=4 x5=4",
        pods(8, topology=preferred(BLOCK, slice_level=RACK, slice_size=4), cpu=250),
        ("x5",),
        "x1=4 x6=4",
    ),
    "one node at a time, and another is gone": Case(
        "gone=1 lost=1", pods(2, topology=preferred(HOST)), ("gone", "lost"), None
    ),
    "one node at a time, and another is still there": Case(
        "gone=1 x2=1", pods(2, topology=preferred(HOST)), ("gone", "x2"), "x1=1 x2=1"
    ),
    "who is named first, not who is gone": Case("gone=1 x2=1", pods(2, topology=preferred(HOST)), ("x2", "gone"), None),
    "nobody named a level": Case("gone=1", pods(1, topology=TopologyRequest(group="g")), ("gone",), "x1=1"),
    "nowhere to go": Case("gone=9", pods(9, topology=preferred(HOST)), ("gone",), None),
    "another of its nodes is not there either": Case("gone=1 lost=1", pods(2), ("gone",), None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_pods_of_a_failed_node_go(name: str) -> None:
    case = CASES[name]
    world = TasWorld(NODES)
    held = world.hold("ns/w", case.wants, case.was, case.failed)
    before = world.free("cpu")
    found = replace(world.queues, held)
    assert world.free("cpu") == before
    if case.now is None:
        assert isinstance(found, str)
    else:
        assert not isinstance(found, str), found
        topology = found.pod_sets[0].topology
        assert topology is not None
        assert spelt(topology) == case.now


def test_a_broken_inner_slice_is_mended_in_its_own_domain() -> None:
    nodes = hosts("b-r1-x1=2", "b-r1-x2=4", "b-r2-x3=4", "b-r2-x4=4")
    layers = (SliceLayer(BLOCK, 8), SliceLayer(RACK, 4))
    world = TasWorld(nodes, LEVELS, LAYERS)
    held = world.hold("ns/w", pods(8, topology=required(BLOCK, layers=layers)), "gone=2 x1=2 x3=4", ("gone",))
    found = replace(world.queues, held)
    assert not isinstance(found, str), found
    topology = found.pod_sets[0].topology
    assert topology is not None
    assert spelt(topology) == "x1=2 x2=2 x3=4"


def test_pod_sets_without_pods_there_keep_their_places() -> None:
    world = TasWorld(NODES)
    held = world.hold("ns/w", pods(1), "x3=1", failed=("x1",))
    assert replace(world.queues, held) == held.admission


def test_a_second_unhealthy_node_that_is_gone_stops_the_repair() -> None:
    world = TasWorld(NODES)
    held = world.hold("ns/w", pods(1), "lost=1", failed=("x1", "lost"))
    assert isinstance(replace(world.queues, held), str)


def test_the_second_unhealthy_node_keeps_its_pods_while_it_is_there() -> None:
    world = TasWorld(NODES)
    held = world.hold("ns/w", pods(1), "x3=1", failed=("x1", "x3"))
    assert replace(world.queues, held) == held.admission
