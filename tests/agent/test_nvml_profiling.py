"""Performance counters are read between two samples of a device, and only where the GPU has them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from build.fake_nvml import GPU_IS_LOST, FakeError, FakeGpu, FakeInstance, FakeNvml
from build.gpu_driver_contract import readings_of
from shoal.agent.nvml import NvmlDriver
from shoal.agent.nvml_library import Handle
from shoal.agent.nvml_profiling import NvmlProfiling
from shoal.devices.port import Profiling

HALF = Profiling(
    **dict.fromkeys(
        ("graphics", "sm", "sm_occupancy", "tensor", "dram", "fp16", "integer", "tensor_dfma", "tensor_hmma"), 0.5
    ),
    tensor_imma=0.5,
    **dict.fromkeys(("pcie_tx_bytes_s", "pcie_rx_bytes_s", "nvlink_tx_bytes_s", "nvlink_rx_bytes_s"), 50.0 * 2**20),
)
"""Half of everything; fp64 is not a number and fp32 is not supported."""


class Node:
    def __init__(self, *, has_performance_counters: bool = True) -> None:
        self.library = FakeNvml([FakeGpu(0, has_performance_counters=has_performance_counters)])
        self.now_s = 0.0
        self.profiling = NvmlProfiling(self.library, self._value, lambda: self.now_s)

    def _value(self, get: object, *given: object) -> object:
        assert callable(get)
        try:
            return get(*given)
        except FakeError:
            return None

    def read(self, at_s: float, instance: int | None = None) -> Profiling | None:
        self.now_s = at_s
        handle: Handle = self.library.nvmlDeviceGetHandleByIndex(0)
        return self.profiling.read("GPU-0", handle, instance)


def test_the_first_reading_has_none_and_the_second_has_ratios_and_rates() -> None:
    node = Node()
    assert node.read(0.0) is None
    assert node.read(1.0) == HALF


def test_readings_within_a_tenth_of_a_second_have_the_values_of_the_former() -> None:
    node = Node()
    node.read(0.0)
    assert node.read(0.05) is None
    assert node.read(1.0) == HALF
    node.library.gpus[0].activity = 10.0
    assert node.read(1.05) == HALF
    assert node.read(2.0) != HALF


def test_instances_are_sampled_apart_from_their_gpu() -> None:
    node = Node()
    assert [node.read(0.0, instance) for instance in (None, 7, 8)] == [None, None, None]
    found = [node.read(1.0, instance) for instance in (None, 7, 8)]
    assert [one.graphics if one is not None else None for one in found] == pytest.approx([0.5, 0.57, 0.58])


def test_a_gpu_without_performance_counters_is_asked_once_and_has_no_values() -> None:
    node = Node(has_performance_counters=False)
    assert [node.read(at_s) for at_s in (0.0, 1.0)] == [None, None]
    node.library.gpus[0].has_performance_counters = True
    assert [node.read(at_s) for at_s in (2.0, 3.0)] == [None, None]
    assert node.library.open_samples == 0


@pytest.mark.parametrize(
    "function", ["nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"]
)
def test_a_function_that_fails_leaves_no_values_and_no_samples(function: str) -> None:
    node = Node()
    node.library.fail(function, 3)
    assert [node.read(at_s) for at_s in (0.0, 1.0, 2.0)] == [None, None, None]
    node.profiling.forget()
    assert node.library.open_samples == 0


def test_one_sample_of_each_device_is_kept_and_freed_when_the_driver_is_closed() -> None:
    instance = FakeInstance(9, "1g.10gb", 0, 1, 9856)
    library = FakeNvml([FakeGpu(0, is_mig=True, instances=[instance])])
    driver = NvmlDriver(library)
    gpu = driver.gpus().gpus[0]
    for _ in range(3):
        readings_of(driver, gpu)
    assert library.open_samples == 2
    driver.close()
    assert library.open_samples == 0


def test_readings_by_two_threads_at_once_free_each_sample_once() -> None:
    """The exporter and the health watcher read the same GPU in threads of their own."""
    node = Node()
    node.read(0.0)
    node.now_s = 1.0
    in_driver, go_on = threading.Event(), threading.Event()
    compare = node.library.nvmlGpmMetricsGet

    def slow(request: Any) -> Any:
        in_driver.set()
        assert go_on.wait(30)
        return compare(request)

    node.library.nvmlGpmMetricsGet = slow  # type: ignore[method-assign]
    first = threading.Thread(target=node.read, args=(1.0,), daemon=True)
    first.start()
    assert in_driver.wait(30)
    second = threading.Thread(target=node.read, args=(1.0,), daemon=True)
    second.start()
    second.join(0.5)
    go_on.set()
    first.join(30)
    second.join(30)
    assert (node.library.open_samples, node.library.freed_twice) == (1, 0)


def test_a_gpu_that_is_lost_between_two_calls_leaves_no_sample() -> None:
    library = FakeNvml([FakeGpu(0)])
    driver = NvmlDriver(library)
    gpu = driver.gpus().gpus[0]
    library.fail("nvmlGpmSampleGet", GPU_IS_LOST)
    for _ in range(3):
        driver.read(gpu.uuid)
    assert library.open_samples == 0
