"""More is asked of a node than it has: another scheduler bound pods there, or its devices became fewer."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.device_demand import (
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


TOO_MANY: dict[str, tuple[Demand, Demand]] = {
    "shares": (GpuShares(2, 400), GpuShare(300)),
    "memory": (MemoryShares(2, 16_000), MemoryShares(1, 12_000)),
    "virtual GPUs": (VirtualGpus(2, percent=40), VirtualGpus(1, percent=30)),
}


@pytest.mark.parametrize("case", TOO_MANY)
def test_a_pod_that_holds_parts_of_more_devices_than_there_are_counts_in_full(case: str) -> None:
    foreign, wanted = (ask().demand(demand) for demand in TOO_MANY[case])
    world = Scenario(node("n").gpus(1).memory_mib(GPU)).bind("foreign", foreign, "n")
    assert world.fitting(wanted) == set()
    assert world.go("foreign").fitting(wanted) == {"n"}


def test_a_node_that_lost_its_devices_owes_nothing_once_the_pods_that_held_mig_instances_have_gone() -> None:
    there, demand = CASES["MIG cut on demand"]
    world = Scenario(there).bind("a", ask().demand(demand), "n").see(there.gpus(0).cut_on_demand("A30-24GB"))
    world.go("a")
    row = world.cluster.row_of["n"]
    assert world.cluster.free[row].tolist() == world.cluster.total[row].tolist()


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


SPREAD = {"replicas", "replicas by the usual name"}
"""On all devices: what is idle on a device is kept for whoever is promised a part of it."""


@pytest.mark.parametrize("case", sorted(CASES.keys() - SPREAD))
def test_of_every_kind_what_is_promised_takes_nothing_that_is_free(case: str) -> None:
    """The room of a pod that ends is promised to another; what was free beside it still is."""
    there, demand = CASES[case]
    wanted = ask().demand(demand)
    world = Scenario(there)
    world.bind("ends", wanted, "n", terminating=True)
    if world.fitting(wanted):
        world.bind("stays", wanted, "n")
    ledger = Ledger(world.cluster)
    row, held = world.cluster.row_of["n"], world.cluster.pods["ends"].grant
    world.arrive("heir", wanted)
    ledger.place("heir", row, held, nominated=True)
    assert world.fitting(wanted) == set()
    assert not world.cluster.devices.is_overloaded(row)
    world.go("stays")
    assert world.fitting(wanted) == {"n"}
    assert world.choice(wanted) is not None
    ledger.rollback()
    assert not world.cluster.devices.overloaded


def test_a_pod_starts_on_a_free_device_while_others_are_promised() -> None:
    world = Scenario(node("n").gpus(3)).bind("ends", gpus(2), "n", devices=(0, 1), terminating=True)
    plan = world.arrive("heir", gpus(2)).arrive("small", gpus(1)).round()
    assert [place.pod for place in plan.placed] == ["small"]
    assert [one.pod for one in plan.nominated] == ["heir"]


def test_what_is_asked_twice_is_missing_beside_what_is_promised() -> None:
    world = Scenario(node("n").gpus(4))
    world.bind("a", gpus(1), "n", devices=(0,)).bind("b", gpus(1), "n", devices=(0,))
    world.bind("ends", gpus(1), "n", devices=(1,), terminating=True)
    ledger = Ledger(world.cluster)
    world.arrive("heir", gpus(1))
    ledger.place("heir", world.cluster.row_of["n"], world.cluster.pods["ends"].grant, nominated=True)
    assert world.fitting(gpus(2)) == set()
    assert world.fitting(gpus(1)) == {"n"}
    assert world.cluster.devices.is_overloaded(world.cluster.row_of["n"])
