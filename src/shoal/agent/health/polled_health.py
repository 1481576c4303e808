"""Reads the health of this machine's GPUs without threads, for a process that asks for it now and then.

Xids that occurred before the first reading are not known. A GPU that cannot be read keeps its former health.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from shoal.devices.device_health import DeviceHealth, NodeHealth
from shoal.devices.port import GpuDriver, GpuList, GpuReadings, LostGpu, UnknownGpuError
from shoal.units.errors import TemporaryError

_READINGS_S = 15.0
"""The time between two readings of a GPU, which take longer than the Xids."""
_MOST_XIDS = 100
"""Read at once; more are read the next time."""


class PolledHealth:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._health, self._clock = NodeHealth(), clock
        self._read_s: float | None = None
        self._listed: frozenset[str] = frozenset()

    def read(self, driver: GpuDriver, listed: GpuList) -> tuple[DeviceHealth, ...]:
        """`listed`: the GPUs as the driver has just reported them."""
        readings: dict[str, GpuReadings | LostGpu] = {}
        at_s = self._clock()
        is_due = self._read_s is None or at_s - self._read_s >= _READINGS_S
        if is_due:
            self._read_s = at_s
        # One that was lost and is listed again may have been reset.
        before, self._listed = self._listed, frozenset(gpu.uuid for gpu in listed.gpus)
        for gpu in listed.gpus:
            if not is_due and gpu.uuid in before:
                continue
            try:
                readings[gpu.uuid] = driver.read(gpu.uuid)
            except (TemporaryError, UnknownGpuError):
                continue
        self._health.update(listed, readings, at_s)
        for _ in range(_MOST_XIDS):
            try:
                event = driver.next_xid(0.0)
            except TemporaryError:
                # Some drivers report no events.
                break
            if event is None:
                break
            self._health.record(event, self._clock())
        return self._health.all()
