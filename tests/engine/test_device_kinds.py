"""Shares by compute and memory, virtual GPUs and replicas: what fits beside what, and on which devices."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine import facts
from shoal.engine.device_demand import (
    Demand,
    GpuShare,
    GpuShares,
    MemoryShares,
    Replicas,
    VirtualGpus,
    WholeGpus,
)

Bound = list[Demand]
Case = tuple[NodeBuilder, Bound, Demand, bool]

ONE = node("n").gpus(1).memory_mib(80_000)
TWO = node("n").gpus(2).memory_mib(80_000)

FITS: dict[str, Case] = {
    "0.6 and 0.6 free do not host 0.8": (TWO, [GpuShare(400), GpuShare(700)], GpuShare(800), False),
    "twice 0.5 wants two devices": (ONE, [], GpuShares(2, 500), False),
    "twice 0.5 on two devices half taken": (TWO, [GpuShares(2, 500)], GpuShares(2, 500), True),
    "twice 0.5 where one device has 0.4 left": (TWO, [GpuShare(600)], GpuShares(2, 500), False),
    "three thirds by memory fill a device": (ONE, [MemoryShares(1, 26_666)] * 2, MemoryShares(1, 26_667), True),
    "a MiB more than the memory does not fit": (ONE, [MemoryShares(1, 26_667)] * 2, MemoryShares(1, 26_667), False),
    "a quarter by compute beside three quarters by memory": (ONE, [MemoryShares(1, 60_000)], GpuShare(250), True),
    "a quarter by compute beside a little more": (ONE, [MemoryShares(1, 60_001)], GpuShare(250), False),
    "memory beside compute": (ONE, [GpuShare(250)], MemoryShares(1, 60_000), True),
    "memory that compute left no room for": (ONE, [GpuShare(251)], MemoryShares(1, 60_000), False),
    "memory of which nothing is known cannot be asked for": (node("n").gpus(1), [], MemoryShares(1, 1), False),
    "more memory than a device has": (TWO, [], MemoryShares(1, 80_001), False),
    "memory on two devices": (TWO, [MemoryShares(1, 30_000)], MemoryShares(2, 50_000), True),
    "memory on two devices of which one has less": (TWO, [MemoryShares(1, 30_001)], MemoryShares(2, 50_000), False),
    "a device with a MiB taken is not empty": (ONE, [MemoryShares(1, 1)], WholeGpus(1), False),
    "a device with a slot taken is not empty": (ONE, [VirtualGpus(1, mib=1)], WholeGpus(1), False),
    "a whole GPU leaves no memory": (ONE, [WholeGpus(1)], MemoryShares(1, 1), False),
    "virtual GPUs share memory": (ONE, [VirtualGpus(1, mib=40_000)], VirtualGpus(1, mib=40_000), True),
    "no memory asked is all the memory": (ONE, [VirtualGpus(1, mib=1)], VirtualGpus(1), False),
    "memory in percent of the device": (ONE, [VirtualGpus(1, percent=40)], VirtualGpus(1, percent=60), True),
    "too much in percent": (ONE, [VirtualGpus(1, percent=41)], VirtualGpus(1, percent=60), False),
    "cores are limited apart from memory": (
        ONE,
        [VirtualGpus(1, mib=1, cores_percent=60)],
        VirtualGpus(1, mib=70_000, cores_percent=40),
        True,
    ),
    "cores given away twice": (
        ONE,
        [VirtualGpus(1, mib=1, cores_percent=60)],
        VirtualGpus(1, mib=1, cores_percent=41),
        False,
    ),
    "no limit of cores joins a device with some left": (
        ONE,
        [VirtualGpus(1, mib=1, cores_percent=99)],
        VirtualGpus(1, mib=1),
        True,
    ),
    "no limit of cores does not join a device with none left": (
        ONE,
        [VirtualGpus(1, mib=1, cores_percent=50)] * 2,
        VirtualGpus(1, mib=1),
        False,
    ),
    "all cores want the device alone": (ONE, [VirtualGpus(1, mib=1)], VirtualGpus(1, mib=1, cores_percent=100), False),
    "all cores of an empty device": (ONE, [], VirtualGpus(1, mib=1, cores_percent=100), True),
    "ten slots": (ONE, [VirtualGpus(1, mib=1)] * 9, VirtualGpus(1, mib=1), True),
    "no eleventh slot": (ONE, [VirtualGpus(1, mib=1)] * 10, VirtualGpus(1, mib=1), False),
    "two virtual GPUs are two devices": (ONE, [], VirtualGpus(2, mib=1), False),
    "a replica per request for one": (ONE.replicated(4), [WholeGpus(1)] * 3, WholeGpus(1), True),
    "no fifth of four replicas": (ONE.replicated(4), [WholeGpus(1)] * 4, WholeGpus(1), False),
    "replicas of several devices": (TWO.replicated(4), [WholeGpus(1)] * 5, WholeGpus(3), True),
    "28 replicas of seven MIG slices": (node("n").gpus(7).replicated(4), [WholeGpus(1)] * 27, WholeGpus(1), True),
    "no 29th": (node("n").gpus(7).replicated(4), [WholeGpus(1)] * 28, WholeGpus(1), False),
    "two replicas at once of time-sliced GPUs": (ONE.replicated(4), [], WholeGpus(2), True),
    "two replicas at once where the plugin fails that": (
        TWO.replicated(4, one_per_request=True),
        [],
        WholeGpus(2),
        False,
    ),
    "one replica there": (TWO.replicated(4, one_per_request=True), [WholeGpus(1)], WholeGpus(1), True),
    "renamed replicas by their name": (ONE.replicated(4, renamed=True), [Replicas(3)], Replicas(1), True),
    "renamed replicas that are used up": (ONE.replicated(4, renamed=True), [Replicas(3)], Replicas(2), False),
    "renamed replicas are not GPUs": (ONE.replicated(4, renamed=True), [], WholeGpus(1), False),
    "replicas that kept their name have no other": (ONE.replicated(4), [], Replicas(1), False),
    "a plain node has no replicas": (ONE, [], Replicas(1), False),
    "half a device beside two of four replicas": (ONE.replicated(4), [WholeGpus(2)], GpuShare(500), True),
    "more than half beside two of four replicas": (ONE.replicated(4), [WholeGpus(2)], GpuShare(501), False),
}


@pytest.mark.parametrize(("there", "bound", "wanted", "fits"), FITS.values(), ids=FITS)
def test_fits(there: NodeBuilder, bound: Bound, wanted: Demand, fits: bool) -> None:
    world = Scenario(there, policy="BestFit")
    for index, demand in enumerate(bound):
        world.arrive(f"p{index}", ask().demand(demand))
        assert len(world.round().placed) == 1, "the pods that are there fit"
    assert (world.fitting(ask().demand(wanted)) == {"n"}) is fits
    world.arrive("last", ask().demand(wanted))
    assert [place.pod for place in world.round().placed] == ["last"] * fits


CHOICES: dict[str, tuple[NodeBuilder, list[tuple[Demand, tuple[int, ...]]], Demand, tuple[int, ...]]] = {
    "several shares go to the devices left with least": (
        node("n").gpus(4),
        [(GpuShare(100), (1,)), (GpuShare(300), (3,)), (GpuShare(700), (2,))],
        GpuShares(2, 500),
        (1, 3),
    ),
    "memory goes to the device with least left": (
        TWO,
        [(MemoryShares(1, 50_000), (1,))],
        MemoryShares(1, 30_000),
        (1,),
    ),
    "replicas go to the devices with the fewest in use": (
        node("n").gpus(3).replicated(4),
        [(WholeGpus(2), (0,)), (WholeGpus(1), (1,))],
        WholeGpus(2),
        (1, 2),
    ),
    "a virtual GPU joins a device in use": (
        TWO,
        [(VirtualGpus(1, mib=1000), (1,))],
        VirtualGpus(1, mib=1000),
        (1,),
    ),
}


@pytest.mark.parametrize(("there", "bound", "wanted", "devices"), CHOICES.values(), ids=CHOICES)
def test_chosen_devices(
    there: NodeBuilder, bound: list[tuple[Demand, tuple[int, ...]]], wanted: Demand, devices: tuple[int, ...]
) -> None:
    world = Scenario(there)
    for index, (demand, held) in enumerate(bound):
        world.held(f"p{index}", ask().demand(demand), "n", held)
        assert world.devices_of(f"p{index}") == held
    assert world.choice(ask().demand(wanted)) == ("n", devices)


def test_memory_is_converted_by_the_node_at_hand() -> None:
    world = Scenario(node("small").gpus(1).memory_mib(16_000), node("large").gpus(1).memory_mib(80_000))
    world.held("a", ask().demand(MemoryShares(1, 8_000)), "small", (0,))
    world.held("b", ask().demand(MemoryShares(1, 8_000)), "large", (0,))
    assert (world.pieces("small"), world.pieces("large")) == ([500], [900])


def test_the_record_counts_replicas_as_gpus_and_compute_as_it_is() -> None:
    world = Scenario(node("n").gpus(2).replicated(4)).held("a", ask().gpus(3), "n", (0, 1))
    row = world.cluster.row_of["n"]
    assert world.cluster.free[row, facts.GPU_WHOLE] == 5
    assert world.cluster.total[row, facts.GPU_WHOLE] == 8
    assert world.pieces("n") == [500, 750]
    assert world.cluster.gpu_free_milli == 1250
    world.go("a")
    assert (world.pieces("n"), world.cluster.gpu_free_milli) == ([1000, 1000], 2000)


class TestNodesThatChangeTheirMind:
    def test_memory_that_turns_out_smaller_presses_harder(self) -> None:
        world = Scenario(ONE).held("a", ask().demand(MemoryShares(1, 20_000)), "n", (0,))
        world.see(node("n").gpus(1).memory_mib(40_000))
        assert world.pieces("n") == [500]
        world.go("a")
        assert world.pieces("n") == [1000]

    def test_gpus_that_become_replicated_and_plain_again(self) -> None:
        plain, shared = node("n").gpus(2), node("n").gpus(2).replicated(4)
        world = Scenario(plain).held("whole", ask().gpus(1), "n", (0,)).see(shared)
        assert world.fitting(ask().gpus(4)) == {"n"}
        assert world.fitting(ask().gpus(5)) == set()
        world.held("replica", ask().gpus(1), "n", (1,)).see(plain)
        assert world.fitting(ask().gpus(1)) == set()
        world.go("whole").go("replica")
        assert (world.pieces("n"), world.cluster.gpu_free_milli) == ([1000, 1000], 2000)

    def test_pods_that_are_there_although_nothing_fits_go_without_a_trace(self) -> None:
        world = Scenario(ONE)
        demands: Bound = [WholeGpus(1), MemoryShares(1, 60_000), VirtualGpus(1), GpuShares(2, 900)]
        for index, demand in enumerate(demands):
            world.bind(f"p{index}", ask().demand(demand), "n")
        assert world.fitting(ask().share(1)) == set()
        for index in range(4):
            world.go(f"p{index}")
        assert world.pieces("n") == [1000]
        assert not any(plane[: world.cluster.rows].any() for plane in world.cluster.devices.planes[1:])

    def test_devices_that_a_node_does_not_have_are_not_believed(self) -> None:
        world = Scenario(ONE).held("a", ask().share(300), "n", (7,))
        assert world.devices_of("a") == (0,)
