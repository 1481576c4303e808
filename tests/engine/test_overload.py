"""More is asked of a node than it has: another scheduler bound pods there, or its devices became fewer."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.devices.demand import (
    Demand,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)
from shoal.engine.ledger import Ledger


def gpus(count: int) -> AskBuilder:
    return ask().gpus(count)


def overfull() -> Scenario:
    """Two pods of ours hold all eight GPUs, and another scheduler bound a pod of four there."""
    world = Scenario(node("n").gpus(8))
    world.bind("a1", gpus(4), "n", devices=(0, 1, 2, 3)).bind("a2", gpus(4), "n", devices=(4, 5, 6, 7))
    return world.bind("foreign", gpus(4), "n")


@pytest.mark.parametrize("failed", ["a1", "a2"])
def test_whichever_pod_fails_its_devices_belong_to_the_foreign_pod(failed: str) -> None:
    world = overfull().go(failed)
    for index in range(6):
        world.arrive(f"late{index}", gpus(1))
    assert world.round().placed == []
    assert world.pieces("n") == [0] * 8


def test_the_guess_moves_to_devices_that_become_free() -> None:
    world = overfull()
    assert world.devices_of("foreign") == (0, 1, 2, 3)
    world.go("a2")
    assert world.devices_of("foreign") == (4, 5, 6, 7)


def test_the_guess_moves_away_from_devices_that_another_pod_is_said_to_hold() -> None:
    world = Scenario(node("n").gpus(8)).bind("foreign", gpus(4), "n")
    world.held("named", gpus(4), "n", (0, 1, 2, 3))
    assert world.devices_of("foreign") == (4, 5, 6, 7)


def test_devices_that_a_pod_is_said_to_hold_are_no_guess() -> None:
    world = Scenario(node("n").gpus(4)).held("x", gpus(2), "n", (0, 1)).held("y", gpus(2), "n", (0, 1))
    world.bind("z", gpus(1), "n", devices=(2,)).go("z")
    assert (world.devices_of("x"), world.devices_of("y")) == ((0, 1), (0, 1))
    assert world.fitting(gpus(1)) == set(), "four of four are asked for, whichever they are"


def test_a_pod_that_came_before_the_devices_of_its_node_holds_some_once_they_are_there() -> None:
    world = Scenario(node("n")).bind("early", gpus(4), "n").see(node("n").gpus(8))
    assert world.devices_of("early") == (0, 1, 2, 3)
    assert world.fitting(gpus(5)) == set()
    assert world.fitting(gpus(4)) == {"n"}


def test_a_node_that_lost_devices_counts_the_pods_on_them_against_those_that_are_left() -> None:
    world = Scenario(node("n").gpus(8)).bind("a", gpus(3), "n", devices=(5, 6, 7)).see(node("n").gpus(4))
    assert world.fitting(gpus(2)) == set()
    assert world.fitting(gpus(1)) == {"n"}


def test_no_trial_frees_devices_that_are_asked_for_twice() -> None:
    world = overfull()
    ledger = Ledger(world.cluster)
    ledger.evict("a2")
    assert world.fitting(gpus(1)) == set()
    ledger.evict("a1")
    assert world.fitting(gpus(4)) == {"n"}
    assert world.fitting(gpus(5)) == set()
    ledger.rollback()
    assert world.devices_of("foreign") == (0, 1, 2, 3)


GPU = 40_000
CASES: dict[str, tuple[NodeBuilder, Demand]] = {
    "whole GPUs": (node("n").gpus(2), WholeGpus(1)),
    "shares": (node("n").gpus(2), GpuShare(600)),
    "several shares": (node("n").gpus(2), GpuShares(1, 600)),
    "memory": (node("n").gpus(2).memory_mib(GPU), MemoryShares(1, 24_000)),
    "replicas": (node("n").gpus(2).replicated(2, renamed=True), Replicas(2)),
    "replicas by the usual name": (node("n").gpus(2).replicated(2), WholeGpus(2)),
    "MPS": (node("n").gpus(2).replicated(1, one_per_request=True), WholeGpus(1)),
    "virtual GPUs": (node("n").gpus(2).memory_mib(GPU), VirtualGpus(1, percent=60, cores_percent=60)),
    "MIG cut on demand": (node("n").gpus(2).cut_on_demand("A30-24GB"), MigTiles((("4g.24gb", 1),))),
}


@pytest.mark.parametrize("case", CASES)
def test_of_every_kind_what_is_asked_twice_is_not_given_a_third_time(case: str) -> None:
    """Three pods on room for two, whichever of them leaves: the two that stay hold all of it."""
    there, demand = CASES[case]
    wanted = ask().demand(demand)
    for leaver in "abc":
        world = Scenario(there)
        world.bind("a", wanted, "n").bind("b", wanted, "n")
        assert world.fitting(wanted) == set()
        world.bind("c", wanted, "n").go(leaver)
        assert world.fitting(wanted) == set(), leaver
        assert world.choice(wanted) is None
        world.go(next(key for key in "abc" if key != leaver))
        assert world.fitting(wanted) == {"n"}, leaver
