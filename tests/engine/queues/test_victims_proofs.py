"""Searches that have to prove more than quota: victims are unseated when the proof is asked for."""

from __future__ import annotations

import pytest

from build.asking import HERE, LOWER_HERE, runs, search, want_of, yielding
from build.queues import amount_of, cluster_queue, queues
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.state import Queues


def alone(*workloads: WorkloadFacts) -> Queues:
    return queues(cluster_queue("alone", rules=LOWER_HERE, cpu=6), *workloads)


def test_the_search_goes_on_until_the_further_proof_holds() -> None:
    world = alone(*(runs(f"low-{index}", "alone", priority=-1, at=index, cpu=2) for index in range(3)))
    held = world.cluster_queues["alone"].held
    assert yielding(world, "alone", fits=lambda: len(held) <= 1, cpu=1) == {"low-2": HERE, "low-1": HERE}


def test_nobody_yields_when_the_further_proof_never_holds() -> None:
    world = alone(*(runs(f"low-{index}", "alone", priority=-1, cpu=2) for index in range(3)))
    assert yielding(world, "alone", fits=lambda: False, cpu=1) == {}


def test_who_is_in_the_way_of_the_further_proof_is_not_spared() -> None:
    world = alone(*(runs(f"low-{index}", "alone", priority=-1, at=index, cpu=2) for index in range(3)))
    held = world.cluster_queues["alone"].held
    found = yielding(world, "alone", fits=lambda: "default/low-0" not in held, cpu=1)
    assert found == {"low-0": HERE}


def test_a_proof_that_breaks_leaves_the_state_as_it_was() -> None:
    world = alone(runs("low", "alone", priority=-1, cpu=6))
    usage = {("default", "cpu"): amount_of("cpu", 1)}

    def breaks() -> bool:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        search(world, want_of(world, "alone", usage, fits=breaks))
    assert list(world.cluster_queues["alone"].held) == ["default/low"]
    assert world.cluster_queues["alone"].usage == {("default", "cpu"): 6000}
