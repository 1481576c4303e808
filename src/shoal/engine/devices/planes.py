"""The devices of all nodes as integer planes: plane x node x device, in one block of memory.

A device is a short vector of what is left on it (today: compute thousandths). Taking a grant subtracts, giving back
adds; both are exact, also when facts contradict each other (two schedulers gave one device away twice), because
amounts may go below zero and come back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.devices.demand import COMPUTE, FULL_MILLI, Grant
from shoal.engine.growth import grown, widened

_LEAST_WIDTH = 8


class DevicePlanes:
    """Free amounts per device. Device slots beyond a node's count hold zero and so never fit anything."""

    __slots__ = ("compute", "count", "planes")

    def __init__(self) -> None:
        self.compute: NDArray[np.int32] = np.zeros((0, _LEAST_WIDTH), np.int32)
        self.count: NDArray[np.int32] = np.zeros(0, np.int32)
        self.planes = [self.compute]

    @property
    def width(self) -> int:
        return int(self.compute.shape[1])

    def grow(self, rows: int) -> None:
        self.count = grown(self.count, rows)
        self._replace([grown(plane, rows) for plane in self.planes])

    def put(self, row: int, count: int) -> None:
        """Set how many devices the row has; what is taken on devices that stay, stays taken."""
        if count > self.width:
            width = -(-count // _LEAST_WIDTH) * _LEAST_WIDTH
            self._replace([widened(plane, width) for plane in self.planes])
        before = int(self.count[row])
        if count > before:
            self.compute[row, before:count] += FULL_MILLI
        elif count < before:
            self.compute[row, count:before] -= FULL_MILLI
        self.count[row] = count

    def clear(self, row: int) -> None:
        for plane in self.planes:
            plane[row] = 0
        self.count[row] = 0

    def take(self, row: int, grant: Grant) -> list[int]:
        """Subtract the grant; returns the compute left on each device."""
        for device, plane, amount in grant.parts:
            values = self.planes[plane]
            values[row, device] = values.item(row, device) - amount
        left: list[int] = self.compute[row].tolist()
        return left

    def give(self, row: int, grant: Grant) -> list[int]:
        """Exactly undo `take`."""
        for device, plane, amount in grant.parts:
            values = self.planes[plane]
            values[row, device] = values.item(row, device) + amount
        left: list[int] = self.compute[row].tolist()
        return left

    def free(self, row: int) -> list[int]:
        """Compute left on each device slot of a row."""
        left: list[int] = self.compute[row].tolist()
        return left

    def _replace(self, planes: list[NDArray[np.int32]]) -> None:
        self.planes = planes
        self.compute = planes[COMPUTE]
