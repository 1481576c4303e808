"""Reads the sensors, counters and processes of one GPU by NVIDIA's management library.

A few functions take most of the processor's time (on an H100 14 of 17 ms). Their values change slowly or only grow, so
they are read at most every ten seconds, and those of processes only if there are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar

from shoal.agent.nvml_counters import NvmlCounters
from shoal.agent.nvml_library import Handle, NvmlLibrary, identity
from shoal.devices.port import EccErrors, GpuProcess, GpuReadings, InstanceReadings, RecoveryAction, RemappedRows

T = TypeVar("T")
_MIB = 2**20
_COSTLY_S = 10.0
_GPU_SENSOR = 0
_SM_CLOCK, _MEMORY_CLOCK = 1, 2
_CORRECTED, _UNCORRECTED = 0, 1
_SINCE_DRIVER_LOAD, _LIFETIME = 0, 1
_MEMORY_TEMPERATURE, _RECOVERY_ACTION = 82, 230
_RECOVERY_ACTIONS: dict[int, RecoveryAction] = {
    0: "none",
    1: "reset",
    2: "reboot",
    3: "drain-p2p",
    4: "drain-and-reset",
    5: "recover-imex",
    6: "bus-reset",
    7: "reboot",
}
_MEMORY_WITH_RESERVED = 0x02000028
_NO_INSTANCE = 0xFFFFFFFF
_REASONS = (
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
    (0x200, "board_limit"),
    (0x400, "reliability"),
)
"""What reduces clocks. Idle GPUs and clocks that a user has set are left out: they are no fault."""


class _Value(Protocol):
    def __call__(self, get: Any, *given: Any) -> Any:
        """The value of a function, or None."""
        ...


class NvmlReadings:
    def __init__(self, library: NvmlLibrary, value: _Value, seconds: Callable[[], float] = monotonic) -> None:
        """`value` calls a function of the library and handles its errors."""
        self._library, self._value, self._seconds = library, value, seconds
        self._counters = NvmlCounters(library, value)
        self._kept: dict[tuple[object, str], tuple[float, Any]] = {}
        """Costly values by GPU and function, with their time."""

    def read(self, handle: Handle) -> GpuReadings:
        library, value, kept = self._library, self._value, self._at_intervals
        counters = self._counters
        running = value(library.nvmlDeviceGetComputeRunningProcesses, handle)
        util = value(library.nvmlDeviceGetUtilizationRates, handle)
        total, used, reserved, free = self._memory(handle)
        return GpuReadings(
            util_percent=None if util is None else util.gpu,
            memory_util_percent=None if util is None else util.memory,
            memory_mib=total,
            used_mib=used,
            reserved_mib=reserved,
            free_mib=free,
            temperature_c=value(library.nvmlDeviceGetTemperature, handle, _GPU_SENSOR),
            memory_temperature_c=self._memory_temperature(handle),
            power_w=_watts(value(library.nvmlDeviceGetPowerUsage, handle)),
            power_limit_w=_watts(value(library.nvmlDeviceGetEnforcedPowerLimit, handle)),
            sm_mhz=value(library.nvmlDeviceGetClockInfo, handle, _SM_CLOCK),
            memory_mhz=value(library.nvmlDeviceGetClockInfo, handle, _MEMORY_CLOCK),
            energy_mj=kept(handle, "energy", lambda one: value(library.nvmlDeviceGetTotalEnergyConsumption, one)),
            ecc=self._ecc(handle, _SINCE_DRIVER_LOAD),
            ecc_lifetime=self._ecc(handle, _LIFETIME),
            remapped_rows=self._remapped_rows(handle),
            throttle_reasons=self._throttle_reasons(handle),
            processes=_processes(running, counters.process_utils(handle) if running else None),
            encoder_percent=counters.engine(library.nvmlDeviceGetEncoderUtilization, handle),
            decoder_percent=counters.engine(library.nvmlDeviceGetDecoderUtilization, handle),
            pcie_replays=kept(handle, "replays", lambda one: value(library.nvmlDeviceGetPcieReplayCounter, one)),
            nvlink=counters.nvlink(handle),
            violations=kept(handle, "violations", counters.violations),
            retired_pages=counters.retired_pages(handle),
            is_vgpu_licensed=kept(handle, "license", counters.is_vgpu_licensed),
            recovery_action=self._recovery_action(handle),
        )

    def instance(self, uuid: str, handle: Handle) -> InstanceReadings:
        """Of a MIG device."""
        _, used, reserved, free = self._memory(handle)
        return InstanceReadings(uuid, used_mib=used, reserved_mib=reserved, free_mib=free)

    def _at_intervals(self, handle: Handle, name: str, get: Callable[[Handle], T]) -> T:
        key, now_s = (identity(handle), name), self._seconds()
        found = self._kept.get(key)
        if found is None or now_s - found[0] >= _COSTLY_S:
            found = self._kept[key] = (now_s, get(handle))
        value: T = found[1]
        return value

    def _memory(self, handle: Handle) -> tuple[int | None, int | None, int | None, int | None]:
        """Total, used, reserved and free MiB; old drivers count the reserved memory as used."""
        try:
            full = self._value(self._library.nvmlDeviceGetMemoryInfo, handle, _MEMORY_WITH_RESERVED)
        except TypeError:  # the function has no version in older modules
            full = None
        if full is not None:
            return full.total // _MIB, full.used // _MIB, full.reserved // _MIB, full.free // _MIB
        plain = self._value(self._library.nvmlDeviceGetMemoryInfo, handle)
        if plain is not None:
            return plain.total // _MIB, plain.used // _MIB, None, plain.free // _MIB
        return None, None, None, None

    def _memory_temperature(self, handle: Handle) -> int | None:
        fields = self._value(self._library.nvmlDeviceGetFieldValues, handle, [_MEMORY_TEMPERATURE])
        # No memory in use has zero degrees; GPUs without the sensor may report it.
        return fields[0].value.uiVal or None if fields and fields[0].nvmlReturn == 0 else None

    def _recovery_action(self, handle: Handle) -> RecoveryAction | None:
        fields = self._value(self._library.nvmlDeviceGetFieldValues, handle, [_RECOVERY_ACTION])
        if not fields or fields[0].nvmlReturn != 0:
            return None
        return _RECOVERY_ACTIONS.get(fields[0].value.uiVal)

    def _ecc(self, handle: Handle, since: int) -> EccErrors | None:
        corrected, uncorrected = (
            self._value(self._library.nvmlDeviceGetTotalEccErrors, handle, kind, since)
            for kind in (_CORRECTED, _UNCORRECTED)
        )
        return None if corrected is None and uncorrected is None else EccErrors(corrected, uncorrected)

    def _remapped_rows(self, handle: Handle) -> RemappedRows | None:
        rows = self._value(self._library.nvmlDeviceGetRemappedRows, handle)
        return None if rows is None else RemappedRows(rows[0], rows[1], bool(rows[2]), bool(rows[3]))

    def _throttle_reasons(self, handle: Handle) -> tuple[str, ...] | None:
        """Drivers before 535 know the function by its former name only, later ones may drop that."""
        mask = self._value(self._library.nvmlDeviceGetCurrentClocksEventReasons, handle)
        if mask is None:
            mask = self._value(self._library.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        return None if mask is None else tuple(name for bit, name in _REASONS if mask & bit)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _processes(found: Sequence[Any] | None, utils: Mapping[int, int] | None) -> tuple[GpuProcess, ...] | None:
    if found is None:
        return None
    return tuple(
        GpuProcess(
            pid=one.pid,
            memory_mib=None if one.usedGpuMemory is None else one.usedGpuMemory // _MIB,
            instance=None if one.gpuInstanceId in (None, _NO_INSTANCE) else one.gpuInstanceId,
            util_percent=None if utils is None else utils.get(one.pid, 0),
        )
        for one in found
    )
