"""How many GPUs of a Node are unhealthy, by what the Node states."""

from __future__ import annotations

import pytest

from build.manifests import Object
from shoal.api.decode import convert
from shoal.api.node import Node
from shoal.engine.device_notation.gpu_health import GpuHealth, gpu_health
from shoal.units.errors import Where


def health(**status: Object) -> GpuHealth | None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4"}
    return gpu_health(convert({"metadata": {"name": "n", "labels": labels}, "status": status}, Node, Where("n")))


@pytest.mark.parametrize(
    "amounts", [{"nvidia.com/gpu": 8}, {"nvidia.com/mig-1g.10gb": 7}, {"nvidia.com/gpu.shared": 4}]
)
def test_a_node_that_states_its_allocatable_gpus_only_is_healthy(amounts: Object) -> None:
    assert health(allocatable=amounts) is None
    assert health(allocatable=amounts, capacity={"cpu": 64}) is None


def test_a_node_whose_labels_name_gpus_and_that_advertises_none_has_a_total_of_zero() -> None:
    for status in ({"allocatable": {"cpu": 64}}, {"allocatable": {"nvidia.com/gpu": 0}}):
        found = health(**status)
        assert found is not None
        assert (found.total, found.unhealthy) == (0, 0)


def test_gpus_of_the_capacity_that_are_not_allocatable_are_unhealthy() -> None:
    found = health(capacity={"nvidia.com/gpu": 8}, allocatable={"nvidia.com/gpu": 6})
    assert found is not None
    assert (found.total, found.unhealthy) == (8, 2)
