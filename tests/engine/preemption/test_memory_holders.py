"""Pods that hold memory of a GPU are in the way of whole GPUs and of fractions, and can be made to yield for them."""

from __future__ import annotations

import pytest

from build.nodes import fleet, node
from build.pods import ask
from build.scenario import AnyAsk
from build.yielding import Yielding, gpus
from shoal.engine.asks import Ask
from shoal.engine.device_demand import GpuShare, MemoryShares, VirtualGpus
from shoal.engine.preemption.policy import Order, VictimPolicy

HOLDERS = [
    Ask(devices=MemoryShares(1, 50_000)),
    Ask(devices=VirtualGpus(1, mib=50_000)),
    Ask(devices=VirtualGpus(1, percent=60, cores_percent=60)),
]
CLAIMANTS = [gpus(1), Ask(devices=GpuShare(800)), Ask(devices=MemoryShares(1, 60_000))]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("claimant", CLAIMANTS)
def test_they_yield_to_whoever_needs_the_device(holder: Ask, claimant: AnyAsk) -> None:
    world = Yielding(node("n").gpus(1).memory_mib(81_920)).runs("held", "n", holder)
    assert world.waits("new", claimant, 5).victims() == ["held"]


def test_only_those_in_the_way_yield() -> None:
    world = Yielding(*fleet(2, node("n").gpus(1).memory_mib(81_920)), policy=VictimPolicy(Order.FEWEST))
    world.runs("a", "n0", HOLDERS[0]).runs("b", "n0", Ask(devices=MemoryShares(1, 20_000))).runs("c", "n1", HOLDERS[0])
    assert world.waits("new", gpus(1), 5).victims() == ["c"]


def test_a_pod_without_devices_does_not_ask_them_to_yield() -> None:
    world = Yielding(node("n").gpus(1).memory_mib(81_920).cpu(8)).runs("held", "n", HOLDERS[0])
    assert world.waits("new", ask().cpu(9), 5).victims() == []
