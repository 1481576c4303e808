"""Evaluates the devices of many rows at once, for rules that the fused record cannot decide.

Lines are rows, columns are device slots. The arithmetic is that of `bench`, which looks at one row; the properties
hold the two against each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.device_demand import CORES, FULL_MILLI, MEMORY, SLOTS
from shoal.engine.devices.overload import balanced_rows
from shoal.engine.devices.planes import DevicePlanes

Ints = NDArray[np.int64]
Verdicts = NDArray[np.bool_]


class DeviceColumns:
    """A view of some rows; what it hands out is a copy."""

    __slots__ = ("planes", "rows")

    def __init__(self, planes: DevicePlanes, rows: Ints) -> None:
        self.planes = planes
        self.rows = rows

    @property
    def compute(self) -> NDArray[np.int32]:
        return self.planes.free_rows(self.rows)

    @property
    def exists(self) -> Verdicts:
        """Which slots are devices."""
        return np.arange(self.planes.width) < self.planes.count.take(self.rows)[:, None]

    @property
    def empty(self) -> Ints:
        """What each device would have left, were nothing taken."""
        return self.planes.full.take(self.rows, axis=0).astype(np.int64)

    @property
    def memory_mib(self) -> Ints:
        """Of each device of the row, as one column."""
        return self.planes.memory_mib.take(self.rows).astype(np.int64)[:, None]

    def taken(self, plane: int) -> Ints:
        values: Ints = self.planes.planes[plane].take(self.rows, axis=0).astype(np.int64)
        return -values

    def unshared(self) -> Ints:
        """What asks for compute left of each device, before other planes press on it."""
        memory, slots = self.taken(MEMORY), self.taken(SLOTS)
        replicas = self.planes.replicas.take(self.rows)[:, None]
        by_slots = np.where(replicas > 0, parts(slots, np.maximum(replicas, 1)), np.minimum(slots, 1))
        pressure = np.maximum(np.maximum(parts(memory, self.memory_mib), self.taken(CORES)), by_slots)
        result: Ints = self.compute.astype(np.int64) + pressure
        return result

    def free_slots(self) -> Ints:
        """Slots for virtual GPUs, or replicas, that can still be had of each device."""
        left = np.where(self.exists, self.planes.slots.take(self.rows)[:, None], 0) - self.taken(SLOTS)
        missing: Verdicts = left.min(axis=1) < 0
        lines = missing.nonzero()[0].tolist()
        left = balanced_rows(left, {line: self.planes.nominated(SLOTS, self.rows.item(line)) for line in lines})
        replicated = self.planes.replicas.take(self.rows)[:, None] > 0
        return np.where(replicated, self.free_replicas(), left) if replicated.any() else left

    def free_replicas(self) -> Ints:
        """Replicas that may still be had of each device; none where devices are not replicated."""
        replicas = self.planes.replicas.take(self.rows).astype(np.int64)[:, None]
        slots = self.taken(SLOTS)
        free = self.unshared() * replicas // FULL_MILLI - slots
        return np.maximum(np.where(self.exists, free, 0), 0)

    def units(self) -> Ints:
        """How many `nvidia.com/gpu` each device still is: one if empty, or its free replicas."""
        replicated = self.planes.replicas.take(self.rows)[:, None] > 0
        empty = (self.compute == FULL_MILLI).astype(np.int64)
        return np.where(replicated, self.free_replicas(), empty) if replicated.any() else empty

    def most_units(self) -> Ints:
        """As `units`, were nothing taken."""
        replicas = self.planes.replicas.take(self.rows)[:, None]
        return np.where(self.empty > 0, np.maximum(replicas, 1), 0).astype(np.int64)


def parts(amounts: Ints, wholes: Ints | NDArray[np.int32]) -> Ints:
    """Thousandths of wholes, rounded up; of an unknown whole any amount is all."""
    exact = -(-amounts * FULL_MILLI // np.maximum(wholes, 1))
    result: Ints = np.where(amounts <= 0, 0, np.where(wholes > 0, exact, FULL_MILLI))
    return result


def largest(amounts: NDArray[np.signedinteger[Any]]) -> Ints:
    """The largest of each line."""
    result: Ints = amounts.max(axis=1).astype(np.int64)
    return result


def how_many(verdicts: Verdicts) -> Ints:
    """The devices of each line of which it is true."""
    result: Ints = np.count_nonzero(verdicts, axis=1)
    return result
