"""A GPU driver whose list of GPUs a test changes."""

from __future__ import annotations

import msgspec

from shoal.devices.port import GpuDriver, GpuList, LostGpu
from shoal.units.errors import TemporaryError


class ChangingDriver:
    """The GPUs of a simulated machine, as a test changes them."""

    def __init__(self, driver: GpuDriver) -> None:
        self.list: GpuList | None = driver.gpus()
        self._other = driver
        self.versions, self.read, self.next_xid, self.close = (
            driver.versions,
            driver.read,
            driver.next_xid,
            driver.close,
        )

    def gpus(self) -> GpuList:
        if self.list is None:
            raise TemporaryError("the driver does not respond", 1.0)
        return self.list

    def lose_first(self) -> None:
        first, *others = self._other.gpus().gpus
        self.list = GpuList(tuple(others), (LostGpu(first.index, first.uuid, "gone"),))

    def divide_first(self) -> None:
        first, *others = self._other.gpus().gpus
        self.list = GpuList((msgspec.structs.replace(first, is_mig=True), *others))
