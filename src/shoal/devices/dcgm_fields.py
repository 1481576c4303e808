"""Lists the metrics of the DCGM exporter: name, type, help text, and the value of a reading that each shows.

The list has the exporter's default metrics, followed by those that it disables by default and that dashboards commonly
enable (ECC counts, activity of the SMs). With MIG, a field is shown once for the GPU, for each instance, or not at all,
such as the utilisation, which is not measured there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from shoal.devices.readings import Reading

Scope = Literal["gpu", "instance", "whole"]
"""With MIG: shown for the GPU; for each instance; not shown."""


class Totals(msgspec.Struct):
    """Counters since the node's boot."""

    energy_mj: float = 0.0
    link_mb: float = 0.0
    double_bit_errors: int = 0
    remapped_rows: int = 0
    remap_failures: int = 0


class Sample(msgspec.Struct, frozen=True):
    reading: Reading
    totals: Totals
    xid: int = 0


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Literal["gauge", "counter"]
    words: str
    value: Callable[[Sample], int | float]
    scope: Scope = "gpu"
    is_per_pod: bool = False
    """Whether a shared GPU has a row for each pod besides its own."""
    needs_link: bool = False


def _percent(sample: Sample) -> int:
    return round(100 * sample.reading.util)


def _dev(name: str, words: str, value: Callable[[Sample], int | float], scope: Scope = "gpu") -> Field:
    return Field(f"DCGM_FI_DEV_{name}", "gauge", words, value, scope)


def _count(name: str, words: str, value: Callable[[Sample], int | float]) -> Field:
    return Field(f"DCGM_FI_DEV_{name}", "counter", words, value)


def _prof(name: str, words: str, factor: float) -> Field:
    return Field(f"DCGM_FI_PROF_{name}", "gauge", words, lambda sample: sample.reading.util * factor, "instance")


FIELDS = (
    _dev("SM_CLOCK", "SM clock frequency (in MHz).", lambda s: s.reading.sm_mhz),
    _dev("MEM_CLOCK", "Memory clock frequency (in MHz).", lambda s: s.reading.memory_mhz),
    _dev("MEMORY_TEMP", "Memory temperature (in C).", lambda s: s.reading.memory_temperature_c),
    _dev("GPU_TEMP", "GPU temperature (in C).", lambda s: s.reading.temperature_c),
    _dev("POWER_USAGE", "Power draw (in W).", lambda s: s.reading.power_w),
    _count("TOTAL_ENERGY_CONSUMPTION", "Energy consumed since boot (in mJ).", lambda s: int(s.totals.energy_mj)),
    _count("PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", lambda _: 0),
    msgspec.structs.replace(_dev("GPU_UTIL", "GPU utilization (in %).", _percent, "whole"), is_per_pod=True),
    _dev("MEM_COPY_UTIL", "Memory utilization (in %).", lambda s: round(45 * s.reading.util), "whole"),
    _dev("ENC_UTIL", "Encoder utilization (in %).", lambda _: 0, "whole"),
    _dev("DEC_UTIL", "Decoder utilization (in %).", lambda _: 0, "whole"),
    _dev("XID_ERRORS", "Value of the last XID error encountered.", lambda s: s.xid),
    _dev("FB_FREE", "Framebuffer memory free (in MiB).", lambda s: s.reading.free_mib, "instance"),
    msgspec.structs.replace(
        _dev("FB_USED", "Framebuffer memory used (in MiB).", lambda s: s.reading.used_mib, "instance"), is_per_pod=True
    ),
    _dev("FB_RESERVED", "Framebuffer memory reserved (in MiB).", lambda s: s.reading.reserved_mib, "instance"),
    msgspec.structs.replace(
        _count("NVLINK_BANDWIDTH_TOTAL", "Total number of NVLink bandwidth counters for all lanes.",
               lambda s: int(s.totals.link_mb)),
        needs_link=True,
    ),
    _dev("VGPU_LICENSE_STATUS", "vGPU License status", lambda _: 0),
    _count("UNCORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for uncorrectable errors",
           lambda s: s.totals.remapped_rows),
    _count("CORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for correctable errors", lambda _: 0),
    _dev("ROW_REMAP_FAILURE", "Whether remapping of rows has failed", lambda s: s.totals.remap_failures),
    _count("ECC_SBE_VOL_TOTAL", "Number of single-bit volatile ECC errors.", lambda _: 0),
    _count("ECC_DBE_VOL_TOTAL", "Number of double-bit volatile ECC errors.", lambda s: s.totals.double_bit_errors),
    _prof("GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", 1.0),
    _prof("SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned.", 0.92),
    _prof("SM_OCCUPANCY", "The ratio of number of warps resident on an SM.", 0.41),
    _prof("PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.", 0.58),
    _prof("DRAM_ACTIVE", "Ratio of cycles the device memory interface is active sending or receiving data.", 0.47),
    _prof("PCIE_TX_BYTES", "The rate of data transmitted over the PCIe bus, in bytes per second.", 2.4e9),
    _prof("PCIE_RX_BYTES", "The rate of data received over the PCIe bus, in bytes per second.", 3.1e9),
)  # fmt: skip
