"""The made-up fleet and pods: repeatable, of the promised size, and never impossible."""

from __future__ import annotations

import pytest

from shoal.sim.synthetic import DEMAND, MAX_NODES, MIN_NODES, make_fleet, make_pods
from shoal.sim.traces.openb import TraceNode, TracePod
from shoal.sim.workload import total_gpu_milli
from shoal.units.errors import UserError

SIZES = [5, 6, 7, 11, 120, 1000]


@pytest.mark.parametrize("size", SIZES)
def test_the_fleet_has_the_size_asked_for_and_every_kind(size: int) -> None:
    nodes = make_fleet(size, 1)
    assert len(nodes) == len({node.name for node in nodes}) == size
    assert {node.model for node in nodes} == {"H100", "A100", "L40S", "A10", "T4"}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [0, 42])
def test_pods_ask_for_nearly_the_whole_fleet_before_any_clone(size: int, seed: int) -> None:
    nodes = make_fleet(size, seed)
    pods = make_pods(nodes, seed)
    requested = sum(pod.requested_milli for pod in pods) / total_gpu_milli(nodes)
    assert DEMAND - 0.05 < requested <= DEMAND
    assert len({pod.name for pod in pods}) == len(pods)


@pytest.mark.parametrize("size", SIZES)
def test_every_pod_fits_some_empty_node(size: int) -> None:
    nodes = make_fleet(size, 3)
    assert all(any(fits(pod, node) for node in nodes) for pod in make_pods(nodes, 3))


def test_cpu_is_scarce_enough_to_matter_and_no_scarcer_than_gpus() -> None:
    nodes = make_fleet(1000, 5)
    pods = make_pods(nodes, 5)
    assert 0.7 < sum(pod.cpu_milli for pod in pods) / sum(node.cpu_milli for node in nodes) < DEMAND


def test_the_mix_holds_every_kind_of_request() -> None:
    pods = make_pods(make_fleet(1000, 5), 5)
    assert {pod.num_gpu for pod in pods} == {0, 1, 2, 4, 8}
    assert any(pod.num_gpu == 1 and pod.gpu_milli < 1000 for pod in pods)
    assert any(pod.gpu_spec for pod in pods)


def test_the_same_seed_makes_the_same_and_another_seed_another() -> None:
    nodes = make_fleet(50, 1)
    assert make_fleet(50, 1) == nodes
    assert make_pods(nodes, 1) == make_pods(nodes, 1)
    assert make_fleet(50, 2) != nodes
    assert make_pods(nodes, 2) != make_pods(nodes, 1)


@pytest.mark.parametrize("size", [MIN_NODES - 1, 0, -1, MAX_NODES + 1])
def test_a_fleet_of_silly_size_is_refused(size: int) -> None:
    with pytest.raises(UserError, match="is outside 5 to 20,000"):
        make_fleet(size, 1)


def fits(pod: TracePod, node: TraceNode) -> bool:
    return (
        pod.cpu_milli <= node.cpu_milli
        and pod.memory_mib <= node.memory_mib
        and pod.num_gpu <= node.gpu
        and (not pod.gpu_spec or node.model in pod.models)
    )
