"""Represents the devices of one row for one decision, as plain lists, because numpy does not pay for eight numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from shoal.devices.layout import Layout
from shoal.engine.device_demand import FULL_MILLI, MEMORY, SLOTS
from shoal.engine.devices.overload import balanced
from shoal.engine.devices.planes import DevicePlanes, part


class NodeDeviceState:
    """One row's devices; read it at once, it does not follow."""

    __slots__ = ("_planes", "row")

    def __init__(self, planes: DevicePlanes, row: int) -> None:
        self._planes = planes
        self.row = row

    @property
    def compute(self) -> list[int]:
        """What can be had of each device slot; slots beyond the count have nothing."""
        return self._planes.free(self.row)

    @property
    def count(self) -> int:
        return self._planes.count.item(self.row)

    @property
    def layout(self) -> Layout:
        return self._planes.layout(self.row)

    @property
    def is_plain(self) -> bool:
        """Whole devices have no distinguishing property, and each is one."""
        layout = self._planes.layouts.get(self.row)
        return layout is None or not (layout.islands or layout.numa or layout.is_replicated())

    @property
    def is_replicated(self) -> bool:
        return self.row in self._planes.odd and self.layout.is_replicated()

    def taken(self, plane: int) -> list[int]:
        return self._planes.taken(plane, self.row)

    def nominated(self, plane: int) -> list[int]:
        return self._planes.nominated(plane, self.row)

    def unshared(self) -> list[int]:
        """What asks for compute left of each device."""
        return [left + pressed for left, pressed in zip(self.compute, self._planes.pressure(self.row), strict=True)]

    def memory_left(self) -> list[int]:
        """MiB that can still be had of each device."""
        whole = self.layout.memory_mib
        return [
            max(whole * unshared // FULL_MILLI - taken, 0)
            for unshared, taken in zip(self.unshared()[: self.count], self.taken(MEMORY), strict=False)
        ]

    def free_slots(self) -> list[int]:
        """Slots for virtual GPUs, or replicas, that can still be had of each device."""
        if self.is_replicated:
            return self.free_replicas()
        most = self.layout.slots
        there = self.count
        left = [most * (device < there) - used for device, used in enumerate(self.taken(SLOTS))]
        return balanced(left, self.nominated(SLOTS))[:there]

    def free_replicas(self) -> list[int]:
        """Replicas that can still be had of each device."""
        replicas = self.layout.replicas
        return [
            max(unshared * replicas // FULL_MILLI - taken, 0)
            for unshared, taken in zip(self.unshared()[: self.count], self.taken(SLOTS), strict=False)
        ]

    def units(self) -> list[int]:
        """How many `nvidia.com/gpu` each device still is."""
        if self.is_replicated:
            return self.free_replicas()
        return [int(left == FULL_MILLI) for left in self.compute]

    def emptiest(self, count: int) -> tuple[int, ...]:
        """For pods that run although nothing fits: where the overload most likely is. Where there are fewer devices
        than the pod asks for, some are named more than once, so that all that is asked for counts."""
        free: list[int] = self._planes.compute[self.row, : self.count].tolist()
        order = sorted(range(len(free)), key=lambda device: (-free[device], device))
        return tuple(sorted(islice(cycle(order), count)))


def tightest(left: Sequence[int], fitting: Sequence[int], count: int) -> tuple[int, ...] | None:
    """The `count` fitting devices with least left, the lowest of equals; None when there are too few."""
    if len(fitting) < count:
        return None
    return tuple(sorted(sorted(fitting, key=lambda device: (left[device], device))[:count]))


def memory_fits(unshared: int, taken_mib: int, mib: int, memory_mib: int) -> bool:
    """Whether a device has so much memory beside what shares and other asks for memory took."""
    return memory_mib > 0 and part(taken_mib + mib, memory_mib) <= unshared
