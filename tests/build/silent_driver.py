"""A GPU driver that does not respond, or whose calls do not return, when a test says so."""

from __future__ import annotations

import threading

from shoal.devices.port import DriverVersions, GpuDriver, GpuList, GpuReadings, LostGpu, XidEvent
from shoal.units.errors import TemporaryError


class SilentDriver:
    """Does not respond while `is_silent`, and waits while `hold` is not set; else it is the inner driver."""

    def __init__(self, inner: GpuDriver) -> None:
        self._inner = inner
        self.is_silent = False
        self.hold = threading.Event()
        self.hold.set()
        self.hangs = ""
        """The only GPU whose calls wait; empty: those of all."""
        self.hangs_at_list = self.hangs_at_versions = False
        self.list: GpuList | None = None
        """In place of that of the inner driver."""
        self.xids: list[XidEvent] = []
        """Reported before those of the inner driver."""

    def versions(self) -> DriverVersions:
        if self.hangs_at_versions:
            assert self.hold.wait(30)
        return self._inner.versions()

    def gpus(self) -> GpuList:
        self._check()
        if self.hangs_at_list:
            assert self.hold.wait(30)
        return self._inner.gpus() if self.list is None else self.list

    def read(self, uuid: str) -> GpuReadings | LostGpu:
        if not self.hangs or uuid == self.hangs:
            assert self.hold.wait(30)
        return self._inner.read(uuid)

    def next_xid(self, timeout_s: float) -> XidEvent | None:
        self._check()
        return self.xids.pop(0) if self.xids else self._inner.next_xid(timeout_s)

    def close(self) -> None:
        self._inner.close()

    def _check(self) -> None:
        if self.is_silent:
            raise TemporaryError("NVIDIA's driver does not respond: error 999", 5.0)
