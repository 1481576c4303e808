"""Lists the fields of DCGM that Shoal has values for: the default metric of each, and how its value is read.

Fields without a value for a GPU have no row; they are never zero instead. With MIG, a field is shown for the GPU, for
each instance, or not at all, such as the utilization, which is not measured there. The other fields of DCGM may be
selected, and have no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Literal

import msgspec

from shoal.data.dcgm_fields import field_numbers
from shoal.devices.dcgm_selection import SelectedMetric, Selection
from shoal.devices.port import GpuReadings, InstalledGpu, InstanceReadings, NvlinkCounters, Profiling, Violations

Number = int | float
Scope = Literal["gpu", "instance", "whole"]
"""With MIG: shown for the GPU; for each instance; not shown."""
Values = GpuReadings | InstanceReadings
XID = "DCGM_FI_DEV_XID_ERRORS"
UTIL, USED = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"
"""Metrics of which a shared GPU has a row for each of its pods, besides its own."""
DRIVER_VERSION = "DCGM_FI_DRIVER_VERSION"
_MB = 1_000_000


class Field(msgspec.Struct, frozen=True):
    counter: SelectedMetric
    value: Callable[[Values], Number | None]
    scope: Scope = "gpu"
    is_default: bool = True
    """Whether it is shown without a selection file."""


def _field(name: str, kind: str, words: str, value: Callable[[GpuReadings], Number | None], scope: Scope) -> Field:
    def of_gpu(values: Values) -> Number | None:
        return value(values) if isinstance(values, GpuReadings) else None

    return Field(SelectedMetric(f"DCGM_FI_DEV_{name}", kind, words), of_gpu, scope)


def _gauge(name: str, words: str, value: Callable[[GpuReadings], Number | None], scope: Scope = "gpu") -> Field:
    return _field(name, "gauge", words, value, scope)


def _count(name: str, words: str, value: Callable[[GpuReadings], Number | None]) -> Field:
    return _field(name, "counter", words, value, "gpu")


def _memory(name: str, words: str, value: Callable[[Values], Number | None]) -> Field:
    return Field(SelectedMetric(f"DCGM_FI_DEV_{name}", "gauge", words), value, "instance")


def _prof(name: str, words: str, value: Callable[[Profiling], float | None]) -> Field:
    def of_profiling(values: Values) -> float | None:
        return None if values.profiling is None else value(values.profiling)

    return Field(SelectedMetric(f"DCGM_FI_PROF_{name}", "gauge", words), of_profiling, "instance")


def _link(name: str, words: str, value: Callable[[NvlinkCounters], int | None]) -> Field:
    return _count(f"NVLINK_{name}", words, lambda r: None if r.nvlink is None else value(r.nvlink))


def _violation(name: str, words: str, value: Callable[[Violations], int | None]) -> Field:
    return _count(
        f"{name}_VIOLATION",
        f"Time with reduced clocks because of {words} (in ns).",
        lambda r: None if r.violations is None else value(r.violations),
    )


def _optional(field: Field) -> Field:
    return msgspec.structs.replace(field, is_default=False)


def _bandwidth(counters: NvlinkCounters) -> int | None:
    if counters.tx_bytes is None and counters.rx_bytes is None:
        return None
    return ((counters.tx_bytes or 0) + (counters.rx_bytes or 0)) // _MB


FIELDS = (
    _gauge("SM_CLOCK", "SM clock frequency (in MHz).", lambda r: r.sm_mhz),
    _gauge("MEM_CLOCK", "Memory clock frequency (in MHz).", lambda r: r.memory_mhz),
    _gauge("MEMORY_TEMP", "Memory temperature (in C).", lambda r: r.memory_temperature_c),
    _gauge("GPU_TEMP", "GPU temperature (in C).", lambda r: r.temperature_c),
    _gauge("POWER_USAGE", "Power draw (in W).", lambda r: r.power_w),
    _optional(_gauge("POWER_MGMT_LIMIT", "Power limit in force (in W).", lambda r: r.power_limit_w)),
    _count("TOTAL_ENERGY_CONSUMPTION", "Energy consumed since boot (in mJ).", lambda r: r.energy_mj),
    _count("PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", lambda r: r.pcie_replays),
    _gauge("GPU_UTIL", "GPU utilization (in %).", lambda r: r.util_percent, "whole"),
    _gauge("MEM_COPY_UTIL", "Memory utilization (in %).", lambda r: r.memory_util_percent, "whole"),
    _gauge("ENC_UTIL", "Encoder utilization (in %).", lambda r: r.encoder_percent, "whole"),
    _gauge("DEC_UTIL", "Decoder utilization (in %).", lambda r: r.decoder_percent, "whole"),
    _memory("FB_FREE", "Framebuffer memory free (in MiB).", lambda v: v.free_mib),
    _memory("FB_USED", "Framebuffer memory used (in MiB).", lambda v: v.used_mib),
    _memory("FB_RESERVED", "Framebuffer memory reserved (in MiB).", lambda v: v.reserved_mib),
    _optional(_gauge("FB_TOTAL", "Framebuffer memory of the GPU (in MiB).", lambda r: r.memory_mib)),
    _link("BANDWIDTH_TOTAL", "Data transmitted and received over all NVLinks (in MB).", _bandwidth),
    _optional(_link("CRC_FLIT_ERROR_COUNT_TOTAL", "CRC errors in the flow control of NVLink.",
                    lambda n: n.crc_flit_errors)),
    _optional(_link("CRC_DATA_ERROR_COUNT_TOTAL", "CRC errors in data sent over NVLink.",
                    lambda n: n.crc_data_errors)),
    _optional(_link("REPLAY_ERROR_COUNT_TOTAL", "Repeated transmissions over NVLink.", lambda n: n.replay_errors)),
    _optional(_link("RECOVERY_ERROR_COUNT_TOTAL", "Recoveries of NVLink that failed.",
                    lambda n: n.recovery_errors)),
    _gauge("VGPU_LICENSE_STATUS", "vGPU License status",
           lambda r: None if r.is_vgpu_licensed is None else int(r.is_vgpu_licensed)),
    _count("UNCORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for uncorrectable errors",
           lambda r: None if r.remapped_rows is None else r.remapped_rows.uncorrectable),
    _count("CORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for correctable errors",
           lambda r: None if r.remapped_rows is None else r.remapped_rows.correctable),
    _gauge("ROW_REMAP_FAILURE", "Whether remapping of rows has failed",
           lambda r: None if r.remapped_rows is None else int(r.remapped_rows.has_failed)),
    _optional(_gauge("ROW_REMAP_PENDING", "Whether a reset is needed to remap a row",
                     lambda r: None if r.remapped_rows is None else int(r.remapped_rows.is_pending))),
    _count("ECC_SBE_VOL_TOTAL", "Corrected memory errors since the driver was loaded.",
           lambda r: None if r.ecc is None else r.ecc.corrected),
    _count("ECC_DBE_VOL_TOTAL", "Uncorrected memory errors since the driver was loaded.",
           lambda r: None if r.ecc is None else r.ecc.uncorrected),
    _optional(_count("ECC_SBE_AGG_TOTAL", "Corrected memory errors in the life of the GPU.",
                     lambda r: None if r.ecc_lifetime is None else r.ecc_lifetime.corrected)),
    _optional(_count("ECC_DBE_AGG_TOTAL", "Uncorrected memory errors in the life of the GPU.",
                     lambda r: None if r.ecc_lifetime is None else r.ecc_lifetime.uncorrected)),
    _optional(_count("RETIRED_SBE", "Pages retired after corrected errors.",
                     lambda r: None if r.retired_pages is None else r.retired_pages.single_bit)),
    _optional(_count("RETIRED_DBE", "Pages retired after uncorrected errors.",
                     lambda r: None if r.retired_pages is None else r.retired_pages.double_bit)),
    _optional(_count("RETIRED_PENDING", "Pages that are retired at the next reset.",
                     lambda r: None if r.retired_pages is None or r.retired_pages.is_pending is None
                     else int(r.retired_pages.is_pending))),
    _optional(_violation("POWER", "power", lambda v: v.power_ns)),
    _optional(_violation("THERMAL", "heat", lambda v: v.thermal_ns)),
    _optional(_violation("SYNC_BOOST", "synchronized clocks", lambda v: v.sync_boost_ns)),
    _optional(_violation("BOARD_LIMIT", "a limit of the board", lambda v: v.board_limit_ns)),
    _optional(_violation("LOW_UTIL", "low utilization", lambda v: v.low_utilization_ns)),
    _optional(_violation("RELIABILITY", "reliability", lambda v: v.reliability_ns)),
    _prof("GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", lambda p: p.graphics),
    _prof("SM_ACTIVE", "Share of cycles in which multiprocessors have work.", lambda p: p.sm),
    _prof("SM_OCCUPANCY", "Share of the warps that multiprocessors can hold.", lambda p: p.sm_occupancy),
    _prof("PIPE_TENSOR_ACTIVE", "Share of cycles with FP16 work for the tensor cores.", lambda p: p.tensor),
    _prof("DRAM_ACTIVE", "Ratio of cycles the device memory interface is active sending or receiving data.",
          lambda p: p.dram),
    _optional(_prof("PIPE_FP64_ACTIVE", "Share of cycles with work for the FP64 units.", lambda p: p.fp64)),
    _optional(_prof("PIPE_FP32_ACTIVE", "Share of cycles with work for the FP32 units.", lambda p: p.fp32)),
    _optional(_prof("PIPE_FP16_ACTIVE", "Share of cycles with work for the FP16 units.", lambda p: p.fp16)),
    _optional(_prof("PIPE_INT_ACTIVE", "Share of cycles with work for the integer units.", lambda p: p.integer)),
    _optional(_prof("PIPE_TENSOR_DFMA_ACTIVE", "Share of cycles with FP64 work for the tensor cores.",
                    lambda p: p.tensor_dfma)),
    _optional(_prof("PIPE_TENSOR_HMMA_ACTIVE", "Share of cycles with FP16 work for the tensor cores.",
                    lambda p: p.tensor_hmma)),
    _optional(_prof("PIPE_TENSOR_IMMA_ACTIVE", "Share of cycles with integer work for the tensor cores.",
                    lambda p: p.tensor_imma)),
    _prof("PCIE_TX_BYTES", "The rate of data transmitted over the PCIe bus, in bytes per second.",
          lambda p: p.pcie_tx_bytes_s),
    _prof("PCIE_RX_BYTES", "The rate of data received over the PCIe bus, in bytes per second.",
          lambda p: p.pcie_rx_bytes_s),
    _optional(_prof("NVLINK_TX_BYTES", "Bytes per second sent over NVLink.",
                    lambda p: p.nvlink_tx_bytes_s)),
    _optional(_prof("NVLINK_RX_BYTES", "Bytes per second received over NVLink.",
                    lambda p: p.nvlink_rx_bytes_s)),
)  # fmt: skip
PROFILING = tuple(field.counter.field for field in FIELDS if field.counter.field.startswith("DCGM_FI_PROF_"))
"""The profiling fields that have values on Hopper and later."""

_LABELS: Mapping[str, Callable[[InstalledGpu], str | None]] = {
    "DCGM_FI_DEV_BRAND": lambda gpu: gpu.brand,
    "DCGM_FI_DEV_SERIAL": lambda gpu: gpu.serial,
    "DCGM_FI_DEV_VBIOS_VERSION": lambda gpu: gpu.vbios,
    "DCGM_FI_DEV_NAME": lambda gpu: gpu.name,
    "DCGM_FI_DEV_UUID": lambda gpu: gpu.uuid,
}
_BEFORE_XID = "DCGM_FI_DEV_DEC_UTIL"


def _default() -> Iterator[SelectedMetric]:
    for field in FIELDS:
        if field.is_default:
            yield field.counter
        if field.counter.field == _BEFORE_XID:
            yield SelectedMetric(XID, "gauge", "Value of the last XID error encountered.")
    yield SelectedMetric(DRIVER_VERSION, "label", "Driver Version")


DEFAULT = Selection(tuple(_default()))
"""The exporter's default selection, with ECC errors and the activity of multiprocessors."""


@cache
def _by_number() -> Mapping[int, Field]:
    return {field_numbers()[field.counter.field]: field for field in FIELDS}


def field_of(name: str) -> Field | None:
    """By its name or a former one; None for a field that has no values here."""
    return _by_number().get(field_numbers().get(name, -1))


def is_xid(name: str) -> bool:
    """Whether the field, which may have its former name, is the last Xid error."""
    return field_numbers().get(name) == field_numbers()[XID]


def label_values(selection: Selection, gpu: InstalledGpu, driver: str) -> dict[str, str]:
    """The fields of the selection that are labels, where the GPU has a value."""
    found = {}
    for name in selection.label_fields:
        value = driver if name == DRIVER_VERSION else _LABELS[name](gpu) if name in _LABELS else None
        if value:
            found[name] = value
    return found
