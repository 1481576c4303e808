"""Reports the GPUs of a simulated node as their driver would.

A simulated GPU that has fallen off the bus is lost until it is repaired. Waiting for an Xid error ends at once, because
simulated time does not pass in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from shoal.data.gpus import Model, find_model
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut
from shoal.devices.nvlink import links_of
from shoal.devices.port import (
    DriverVersions,
    EccErrors,
    GpuList,
    GpuProcess,
    GpuReadings,
    InstalledGpu,
    InstanceReadings,
    LostGpu,
    NvlinkCounters,
    Profiling,
    RecoveryAction,
    RemappedRows,
    UnknownGpuError,
    XidEvent,
)
from shoal.devices.xids import Xid
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.readings import read_instance
from shoal.embedded.gpus.smi_node import processes_on
from shoal.embedded.gpus.usage_counters import Totals, UsageCounters

_PROFILED_BY_DRIVERS = 9
"""Drivers read the performance counters of Hopper and later; older ones need DCGM."""
_MEMORY_LOAD, _MB = 0.45, 1_000_000

_FIRST_CAPABILITY = 3
"""Lower numbers are those of the node itself: its configuration and its monitoring."""


def simulated_capabilities(gpus: Sequence[InstalledGpu]) -> Mapping[str, int]:
    """The minor numbers of MIG capabilities, as a driver would give them for these GPUs."""
    names = [
        name
        for gpu in gpus
        for one in gpu.instances
        for name in (f"gpu{gpu.minor}/gi{one.instance}/access", f"gpu{gpu.minor}/gi{one.instance}/ci0/access")
    ]
    return {name: number for number, name in enumerate(names, start=_FIRST_CAPABILITY)}


class SimulatedDriver:
    """Implements GpuDriver."""

    def __init__(
        self,
        device_manager: DeviceManager,
        counters: UsageCounters,
        at_s: Callable[[], float],
        profiled_from: int = _PROFILED_BY_DRIVERS,
    ) -> None:
        """`counters`: those of the node's GPUs. `at_s`: the time. `profiled_from`: the first major compute capability
        whose performance counters are read.
        """
        self._profiled_from = profiled_from
        self._device_manager, self._counters, self._at_s = device_manager, counters, at_s
        self._reported: dict[int, int] = {}
        """The Xid of each GPU that has one, as reported."""

    def versions(self) -> DriverVersions:
        software = self._device_manager.software
        return DriverVersions(software.driver, software.cuda)

    def gpus(self) -> GpuList:
        slots = self._device_manager.machine.gpus
        lost = tuple(lost for slot in slots if (lost := self._lost(slot)) is not None)
        gone = {one.uuid for one in lost}
        return GpuList(
            tuple(_without(gpu, lost) for gpu in self._device_manager.reported if gpu.uuid not in gone), lost
        )

    def read(self, uuid: str) -> GpuReadings | LostGpu:
        slot = next((one for one in self._device_manager.machine.gpus if one.uuid == uuid), None)
        if slot is None:
            raise UnknownGpuError(uuid)
        return self._lost(slot) or self._readings(slot)

    def next_xid(self, timeout_s: float) -> XidEvent | None:  # noqa: ARG002 - no time passes here
        for slot in self._device_manager.machine.gpus:
            fault = self._device_manager.xid(slot.index)
            if fault is None:
                self._reported.pop(slot.index, None)
            elif self._reported.get(slot.index) != fault.number:
                self._reported[slot.index] = fault.number
                return XidEvent(slot.uuid, fault.number)
        return None

    def close(self) -> None:
        self._reported.clear()

    def _lost(self, slot: GpuSlot) -> LostGpu | None:
        fault = self._device_manager.xid(slot.index)
        if fault is None or not fault.is_lost:
            return None
        return LostGpu(slot.index, slot.uuid, f"Xid {fault.number}: {fault.meaning}")

    def _readings(self, slot: GpuSlot) -> GpuReadings:
        at_s = self._at_s()
        self._counters.account(at_s)
        sample = self._counters.sample(slot, at_s)
        reading, totals = sample.reading, sample.totals
        gpu, model = self._device_manager.gpus[slot.index], find_model(slot.model)
        return GpuReadings(
            util_percent=None if gpu.is_mig else round(100 * reading.util),
            memory_util_percent=None if gpu.is_mig else round(100 * _MEMORY_LOAD * reading.util),
            encoder_percent=None if gpu.is_mig else 0,
            decoder_percent=None if gpu.is_mig else 0,
            pcie_replays=0,
            nvlink=_nvlink(totals) if links_of(model) else None,
            is_vgpu_licensed=False,
            profiling=self._profiling(model, reading.util),
            instances=tuple(self._instance(slot, one, model, at_s) for one in gpu.cuts),
            memory_mib=slot.memory_mib,
            used_mib=reading.used_mib,
            reserved_mib=reading.reserved_mib,
            free_mib=reading.free_mib,
            temperature_c=reading.temperature_c,
            memory_temperature_c=reading.memory_temperature_c,
            power_w=reading.power_w,
            power_limit_w=float(reading.power_limit_w),
            sm_mhz=reading.sm_mhz,
            memory_mhz=reading.memory_mhz,
            energy_mj=int(totals.energy_mj),
            ecc=EccErrors(corrected=0, uncorrected=totals.double_bit_errors),
            remapped_rows=_remapped_rows(totals),
            throttle_reasons=(),
            processes=tuple(
                GpuProcess(one.pid, one.memory_mib, one.instance)
                for one in processes_on(self._device_manager, slot, gpu.cuts)
            ),
            recovery_action=_recovery_action(self._device_manager.xid(slot.index)),
        )

    def _instance(self, slot: GpuSlot, one: Cut, model: Model | None, at_s: float) -> InstanceReadings:
        reading = read_instance(self._device_manager, slot, one.uuid, one.memory_mib, at_s)
        return InstanceReadings(
            one.uuid,
            used_mib=reading.used_mib,
            reserved_mib=reading.reserved_mib,
            free_mib=reading.free_mib,
            profiling=self._profiling(model, reading.util),
        )

    def _profiling(self, model: Model | None, util: float) -> Profiling | None:
        if model is None or int(model.compute_capability.partition(".")[0]) < self._profiled_from:
            return None
        return Profiling(
            graphics=util,
            sm=0.92 * util,
            sm_occupancy=0.41 * util,
            tensor=0.58 * util,
            dram=0.47 * util,
            pcie_tx_bytes_s=2.4e9 * util,
            pcie_rx_bytes_s=3.1e9 * util,
        )


def _nvlink(totals: Totals) -> NvlinkCounters:
    half = int(totals.link_mb) * _MB // 2
    return NvlinkCounters(half, half, 0, 0, 0, 0)


def _without(gpu: InstalledGpu, missing: Sequence[LostGpu]) -> InstalledGpu:
    """Without its connections to lost GPUs."""
    gone, lost = {one.uuid for one in missing}, {one.index for one in missing}
    return msgspec.structs.replace(
        gpu,
        peers=tuple(peer for peer in gpu.peers if peer.uuid not in gone),
        pcie_peers=tuple(peer for peer in gpu.pcie_peers if peer.uuid not in gone),
        nvlink_statuses=tuple(one for one in gpu.nvlink_statuses if one.index not in lost),
    )


def _remapped_rows(totals: Totals) -> RemappedRows:
    is_pending = bool(totals.remapped_rows)
    return RemappedRows(0, totals.remapped_rows, is_pending=is_pending, has_failed=bool(totals.remap_failures))


def _recovery_action(fault: Xid | None) -> RecoveryAction:
    """A GPU that needs a reset says so until it is repaired."""
    if fault is None or not fault.marks_unhealthy():
        return "none"
    found: dict[str, RecoveryAction] = {
        "reset": "reset",
        "drain-and-reset": "drain-and-reset",
        "nvlink": "drain-p2p",
        "reboot": "reboot",
        "power-cycle": "reboot",
    }
    return found.get(fault.action, "none")
