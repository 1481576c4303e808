"""Compute modes are read and set by the driver's library and on simulated GPUs alike."""

from __future__ import annotations

from typing import cast

import pytest

from build.compute_modes_contract import ComputeModesContract, ModeNode
from build.fake_nvml import NOT_SUPPORTED, FakeGpu, FakeNvml
from shoal.agent.sharing.nvml_compute_mode import NvmlComputeModes, NvmlModeLibrary
from shoal.devices.compute_mode import ComputeModeError
from shoal.embedded.gpus.simulated_compute_modes import SimulatedComputeModes


class TestNvmlComputeModes(ComputeModesContract):
    @pytest.fixture
    def node(self) -> ModeNode:
        gpus = [FakeGpu(0), FakeGpu(1)]
        modes = NvmlComputeModes(cast("NvmlModeLibrary", FakeNvml(gpus)))
        return ModeNode(modes, (gpus[0].uuid, gpus[1].uuid))


class TestSimulatedComputeModes(ComputeModesContract):
    @pytest.fixture
    def node(self) -> ModeNode:
        return ModeNode(SimulatedComputeModes(("GPU-0", "GPU-1")), ("GPU-0", "GPU-1"))


@pytest.mark.parametrize(
    ("code", "words"),
    [(4, "no permission; run as root"), (NOT_SUPPORTED, "does not support it"), (15, "does not respond")],
)
def test_why_the_driver_refuses_a_mode_is_said(code: int, words: str) -> None:
    library = FakeNvml([FakeGpu(0)])
    library.fail("nvmlDeviceSetComputeMode", code)
    with pytest.raises(ComputeModeError, match=words):
        NvmlComputeModes(cast("NvmlModeLibrary", library)).set_mode(library.gpus[0].uuid, "exclusive-process")
    assert library.gpus[0].compute_mode == 0


def test_a_mode_that_is_not_known_is_an_error() -> None:
    gpu = FakeGpu(0, compute_mode=7)
    with pytest.raises(ComputeModeError, match="the number 7"):
        NvmlComputeModes(cast("NvmlModeLibrary", FakeNvml([gpu]))).mode(gpu.uuid)
