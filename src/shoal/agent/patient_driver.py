"""Lets commands use a driver some of whose calls may never return: they report it and end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from shoal.agent.patient_call import PatientCall, SilentDriverError
from shoal.devices.port import DriverVersions, GpuDriver, GpuList, GpuReadings, LostGpu, XidEvent

_OPEN_S, _CALL_S, _CLOSE_S = 60.0, 20.0, 3.0


class PatientDriver:
    """Implements GpuDriver. A call that does not return in time raises `SilentDriverError`; that for Xids may wait."""

    def __init__(self, open_driver: Callable[[], GpuDriver], patience_s: float = _CALL_S) -> None:
        """Raises what `open_driver` raises."""
        self._patience_s = patience_s
        self._driver = PatientCall(open_driver, _OPEN_S)()

    def versions(self) -> DriverVersions:
        return PatientCall(self._driver.versions, self._patience_s)()

    def gpus(self) -> GpuList:
        return PatientCall(self._driver.gpus, self._patience_s)()

    def read(self, uuid: str) -> GpuReadings | LostGpu:
        return PatientCall(partial(self._driver.read, uuid), self._patience_s)()

    def next_xid(self, timeout_s: float) -> XidEvent | None:
        return self._driver.next_xid(timeout_s)

    def close(self) -> None:
        """A call that is still blocked may keep the driver from closing; the process ends anyway."""
        with suppress(SilentDriverError):
            PatientCall(self._driver.close, min(self._patience_s, _CLOSE_S))()
