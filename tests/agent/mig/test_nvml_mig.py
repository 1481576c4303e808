"""Changes of MIG by NVIDIA's library keep the contract, here over an object with the library's functions."""

from __future__ import annotations

import pytest

from build.fake_nvml import GPU_IS_LOST, NOT_SUPPORTED, FakeGpu, FakeNvml
from build.mig_control_contract import HALF, SMALL, MigControlContract, MigNode, fails
from shoal.agent.mig.nvml_mig import NvmlMigControl
from shoal.agent.nvml import NvmlDriver
from shoal.devices.mig_port import GpuInstance

NO_PERMISSION = 4
CHANGES = [
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlGpuInstanceGetComputeInstanceProfileInfo",
    "nvmlGpuInstanceCreateComputeInstance",
]


def node_of(library: FakeNvml, gpus: list[FakeGpu]) -> MigNode:
    def use(gpu: int, instance: int | None) -> None:
        gpus[gpu].processes.append((77, 0, 0xFFFFFFFF if instance is None else instance))

    return MigNode(NvmlMigControl(library), NvmlDriver(library), use)


class TestNvidiaLibrary(MigControlContract):
    @pytest.fixture
    def node(self) -> MigNode:
        gpus = [FakeGpu(0), FakeGpu(1)]
        return node_of(FakeNvml(gpus), gpus)


@pytest.fixture
def gpus() -> list[FakeGpu]:
    return [FakeGpu(0, needs_reset=True), FakeGpu(1)]


def test_a_mode_that_waits_for_a_reset_is_not_in_effect(gpus: list[FakeGpu]) -> None:
    node = node_of(FakeNvml(gpus), gpus)
    assert not node.control.set_mode(node.uuid(0), enabled=True)
    assert node.driver.gpus().gpus[0].is_mig is False


@pytest.mark.parametrize("function", CHANGES)
def test_a_gpu_instance_whose_compute_instance_fails_is_destroyed_again(function: str) -> None:
    gpus = [FakeGpu(0, is_mig=True)]
    library = FakeNvml(gpus)
    node = node_of(library, gpus)
    library.fail(function, NOT_SUPPORTED)
    assert "cannot create 3g.40gb at slice 0" in fails(
        "not-supported", lambda: node.control.create(node.uuid(), HALF, 0, (3,))
    )
    assert gpus[0].instances == []


def test_a_gpu_instance_left_without_compute_instances_is_listed() -> None:
    gpus = [FakeGpu(0, is_mig=True)]
    gpus[0].instances = [gpus[0].new_instance(3, SMALL, 2, 1, 9856)]
    node = node_of(FakeNvml(gpus), gpus)
    assert node.control.instances(node.uuid()) == (GpuInstance(3, SMALL, 2, 1),)


def test_several_compute_instances_share_a_gpu_instance() -> None:
    gpus = [FakeGpu(0, is_mig=True)]
    node = node_of(FakeNvml(gpus), gpus)
    node.control.create(node.uuid(), HALF, 0, (2, 1))
    (one,) = node.control.instances(node.uuid())
    assert one.compute == (2, 1)
    node.control.destroy(node.uuid(), one.number)
    assert gpus[0].instances == []


@pytest.mark.parametrize(("code", "reason"), [(NO_PERMISSION, "no-permission"), (GPU_IS_LOST, "lost"), (999, "other")])
def test_failures_of_the_library_are_named(code: int, reason: str) -> None:
    gpus = [FakeGpu(0)]
    library = FakeNvml(gpus)
    node = node_of(library, gpus)
    library.fail("nvmlDeviceSetMigMode", code)
    assert "cannot enable MIG mode" in fails(reason, lambda: node.control.set_mode(node.uuid(), enabled=True))
