"""What Shoal expects of NVIDIA's library is what the real module has. No driver is needed for this."""

from __future__ import annotations

import inspect
from types import ModuleType

import pynvml
import pytest

from build.fake_nvml import FakeNvml
from shoal.agent import nvml, nvml_counters, nvml_library, nvml_profiling, nvml_readings
from shoal.agent.nvml_library import NvmlLibrary, code_of

FUNCTIONS = [name for name in vars(NvmlLibrary) if name.startswith("nvml")]


def test_there_are_functions_to_compare() -> None:
    assert len(FUNCTIONS) > 30


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_module_and_the_fake_take_the_arguments_that_shoal_gives(name: str) -> None:
    expected = list(inspect.signature(getattr(NvmlLibrary, name)).parameters.values())[1:]
    for owner, first in ((pynvml, 0), (FakeNvml, 1)):
        found = list(inspect.signature(getattr(owner, name)).parameters.values())[first:]
        needed = [one for one in found if one.default is inspect.Parameter.empty]
        assert len(needed) <= len(expected) <= len(found), owner
        assert len(needed) == len([one for one in expected if one.default is inspect.Parameter.empty]), owner


@pytest.mark.parametrize(
    ("module", "name", "constant"),
    [
        (nvml_library, "NOT_SUPPORTED", "NVML_ERROR_NOT_SUPPORTED"),
        (nvml_library, "NO_PERMISSION", "NVML_ERROR_NO_PERMISSION"),
        (nvml_library, "NOT_FOUND", "NVML_ERROR_NOT_FOUND"),
        (nvml_library, "DRIVER_NOT_LOADED", "NVML_ERROR_DRIVER_NOT_LOADED"),
        (nvml_library, "TIMEOUT", "NVML_ERROR_TIMEOUT"),
        (nvml_library, "LIBRARY_NOT_FOUND", "NVML_ERROR_LIBRARY_NOT_FOUND"),
        (nvml_library, "GPU_IS_LOST", "NVML_ERROR_GPU_IS_LOST"),
        (nvml_library, "RESET_REQUIRED", "NVML_ERROR_RESET_REQUIRED"),
        (nvml_library, "VERSION_MISMATCH", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
        (nvml_library, "GPU_NOT_FOUND", "NVML_ERROR_GPU_NOT_FOUND"),
        (nvml_library, "UNKNOWN", "NVML_ERROR_UNKNOWN"),
        (nvml, "_MOST_LINKS", "NVML_NVLINK_MAX_LINKS"),
        (nvml, "_TO_GPU", "NVML_NVLINK_DEVICE_TYPE_GPU"),
        (nvml, "_TO_SWITCH", "NVML_NVLINK_DEVICE_TYPE_SWITCH"),
        (nvml, "_MIG_ENABLED", "NVML_DEVICE_MIG_ENABLE"),
        (nvml, "_XID_EVENT", "nvmlEventTypeXidCriticalError"),
        (nvml_readings, "_GPU_SENSOR", "NVML_TEMPERATURE_GPU"),
        (nvml_readings, "_SM_CLOCK", "NVML_CLOCK_SM"),
        (nvml_readings, "_MEMORY_CLOCK", "NVML_CLOCK_MEM"),
        (nvml_readings, "_CORRECTED", "NVML_MEMORY_ERROR_TYPE_CORRECTED"),
        (nvml_readings, "_UNCORRECTED", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED"),
        (nvml_readings, "_SINCE_DRIVER_LOAD", "NVML_VOLATILE_ECC"),
        (nvml_readings, "_LIFETIME", "NVML_AGGREGATE_ECC"),
        (nvml_counters, "_SINGLE_BIT", "NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS"),
        (nvml_counters, "_DOUBLE_BIT", "NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR"),
        (nvml_profiling, "_VERSION", "NVML_GPM_METRICS_GET_VERSION"),
        (nvml_readings, "_MEMORY_TEMPERATURE", "NVML_FI_DEV_MEMORY_TEMP"),
        (nvml_readings, "_MEMORY_WITH_RESERVED", "nvmlMemory_v2"),
    ],
)
def test_a_constant_has_the_value_of_the_module(module: ModuleType, name: str, constant: str) -> None:
    assert getattr(module, name) == getattr(pynvml, constant)


@pytest.mark.parametrize(("bit", "name"), nvml_readings._REASONS)
def test_a_reason_for_reduced_clocks_has_the_bit_of_the_module(bit: int, name: str) -> None:
    words = name.replace("_", "").lower()
    named = {key.lower(): value for key, value in vars(pynvml).items() if key.startswith("nvmlClocksThrottleReason")}
    assert named[f"nvmlclocksthrottlereason{words}"] == bit


def test_an_error_of_the_module_has_its_code() -> None:
    assert code_of(pynvml.NVMLError(nvml_library.GPU_IS_LOST)) == nvml_library.GPU_IS_LOST
    assert code_of(ValueError("something else")) == nvml_library.UNKNOWN


def test_handles_of_one_gpu_are_recognized() -> None:
    cells = [pynvml.struct_c_nvmlDevice_t(), pynvml.struct_c_nvmlDevice_t()]
    first, again, other = (pynvml.pointer(cells[index]) for index in (0, 0, 1))
    assert first is not again
    assert nvml_library.identity(first) == nvml_library.identity(again) != nvml_library.identity(other)


def test_the_library_of_this_environment_is_the_module() -> None:
    library: object = nvml_library.nvml_library()
    assert library is pynvml


def test_counters_of_links_are_read_from_the_fields_of_the_library() -> None:
    names = {
        "tx_bytes": "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX",
        "rx_bytes": "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX",
        "crc_flit_errors": "NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "crc_data_errors": "NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "replay_errors": "NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "recovery_errors": "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    }
    expected = {name: getattr(pynvml, constant) for name, constant in names.items()}
    assert {name: field for name, (field, _) in nvml_counters._LINK_FIELDS.items()} == expected


def test_reasons_of_reduced_clocks_are_in_the_order_of_the_library() -> None:
    names = ("POWER", "THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTILIZATION", "RELIABILITY")
    assert [getattr(pynvml, f"NVML_PERF_POLICY_{name}") for name in names] == list(range(len(nvml_counters._POLICIES)))


def test_performance_counters_have_the_numbers_of_the_library() -> None:
    names = {
        "graphics": "GRAPHICS_UTIL",
        "sm": "SM_UTIL",
        "sm_occupancy": "SM_OCCUPANCY",
        "integer": "INTEGER_UTIL",
        "tensor": "ANY_TENSOR_UTIL",
        "tensor_dfma": "DFMA_TENSOR_UTIL",
        "tensor_hmma": "HMMA_TENSOR_UTIL",
        "tensor_imma": "IMMA_TENSOR_UTIL",
        "dram": "DRAM_BW_UTIL",
        "fp64": "FP64_UTIL",
        "fp32": "FP32_UTIL",
        "fp16": "FP16_UTIL",
        "pcie_tx_bytes_s": "PCIE_TX_PER_SEC",
        "pcie_rx_bytes_s": "PCIE_RX_PER_SEC",
        "nvlink_rx_bytes_s": "NVLINK_TOTAL_RX_PER_SEC",
        "nvlink_tx_bytes_s": "NVLINK_TOTAL_TX_PER_SEC",
    }
    expected = {name: getattr(pynvml, f"NVML_GPM_METRIC_{constant}") for name, constant in names.items()}
    assert expected == nvml_profiling._METRICS


def test_the_request_for_performance_counters_has_the_fields_that_shoal_sets() -> None:
    request = pynvml.c_nvmlGpmMetricsGet_t()
    names = {name for name, *_ in request._fields_}
    assert {"version", "numMetrics", "sample1", "sample2", "metrics"} <= names
    assert {"metricId", "nvmlReturn", "value"} <= {name for name, *_ in request.metrics[0]._fields_}
    assert len(request.metrics) > len(nvml_profiling._METRICS)
