"""Counts what the GPUs of a simulated node have used since its boot: energy, traffic over NVLink, memory errors.

Counters need state, so this is an object: it accumulates the usage of each interval, and is updated before programs
start or end and at every reading.
"""

from __future__ import annotations

from threading import Lock

import msgspec

from shoal.data.gpus import find_model
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.readings import Reading
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.readings import gpu_load, power_w, read_gpu

_LINK_LOAD = 0.2
_DOUBLE_BIT, _REMAPPED, _REMAP_FAILED = 48, 63, 64


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


class UsageCounters:
    def __init__(self, device_manager: DeviceManager, booted_s: float | None = None) -> None:
        """Without a boot time, the time of the first reading is used."""
        self._device_manager = device_manager
        self._totals = [Totals() for _ in device_manager.machine.gpus]
        self._seen_xid = [0] * len(self._totals)
        self._last_s = booted_s
        self._lock = Lock()
        """An agent reads each GPU in a thread of its own."""

    def boot(self, at_s: float) -> None:
        for totals in self._totals:
            totals.energy_mj = totals.link_mb = 0.0
        self._last_s = at_s

    def account(self, at_s: float) -> None:
        """Count the usage of the current programs since the last call."""
        with self._lock:
            passed = max(at_s - self._last_s, 0.0) if self._last_s is not None else 0.0
            self._last_s = at_s if self._last_s is None else max(at_s, self._last_s)
            for slot in self._device_manager.machine.gpus if passed else ():
                self._add(slot, at_s, passed)

    def _add(self, slot: GpuSlot, at_s: float, passed_s: float) -> None:
        util, totals = gpu_load(self._device_manager, slot, at_s), self._totals[slot.index]
        model = find_model(slot.model)
        totals.energy_mj += power_w(model, util) * 1000 * passed_s
        totals.link_mb += util * (model.link_gb_s if model is not None else 0) * 1000 * _LINK_LOAD * passed_s

    def sample(self, slot: GpuSlot, at_s: float) -> Sample:
        """The values of one GPU, with the counters as of the last `account`."""
        reading, totals = read_gpu(self._device_manager, slot, at_s), self._totals[slot.index]
        fault = self._device_manager.xid(slot.index)
        number = fault.number if fault is not None else 0
        if number != self._seen_xid[slot.index]:
            self._seen_xid[slot.index] = number
            totals.double_bit_errors += number == _DOUBLE_BIT
            totals.remapped_rows += number == _REMAPPED
            totals.remap_failures = int(number == _REMAP_FAILED)
        return Sample(reading, totals)
