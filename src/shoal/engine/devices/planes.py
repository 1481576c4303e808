"""Stores the devices of all nodes as integer planes: plane x node x device.

COMPUTE holds what is left; the other planes hold minus what was taken, zero on an untouched device, so that a node may
change its mind about its GPUs without touching them. Taking a grant subtracts, giving back adds; both are exact, also
when facts contradict each other (two schedulers gave one device away twice), because amounts may go below zero and
come back.

Planes are different views of one device, so COMPUTE follows the others: it is lower by the *pressure* on the device,
the largest of the parts of it that memory, cores and replicas came to. The pressure is a function of the other planes
and of nothing else; hence no device in use looks empty, and undoing stays exact. Rejected: rounding each
ask for memory to thousandths, by which three thirds of a device would not fit on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import sub
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.devices.layout import PLAIN, SLOTS_PER_DEVICE, Layout
from shoal.devices.tiling import is_held_twice
from shoal.engine.device_demand import COMPUTE, CORES, FULL_MILLI, MEMORY, SLICES, SLOTS, DeviceGrant
from shoal.engine.devices.overload import balanced, balanced_rows
from shoal.engine.growth import grown, widened

_LEAST_WIDTH: Final = 8

MOST_NUMA: Final = 16
UNKNOWN: Final = -1

ControlPlane: TypeAlias = NDArray[np.signedinteger[Any]]


class DevicePlanes:
    """Amounts per device. Device slots beyond a node's count hold zero and so never fit anything."""

    __slots__ = (
        "_may_be_pressed",
        "_nominations",
        "compute",
        "count",
        "cut",
        "full",
        "islands",
        "layouts",
        "memory_mib",
        "mig_single",
        "numa",
        "numa_cores_milli",
        "odd",
        "overloaded",
        "planes",
        "replicas",
        "slots",
        "strict",
    )

    def __init__(self) -> None:
        self.compute: NDArray[np.int32] = np.zeros((0, _LEAST_WIDTH), np.int32)
        self.full: NDArray[np.int32] = np.zeros((0, _LEAST_WIDTH), np.int32)
        """What COMPUTE would be, were nothing taken: nothing on devices in MIG mode and on broken ones."""
        self.count: NDArray[np.int32] = np.zeros(0, np.int32)
        self.planes: list[ControlPlane] = [
            self.compute,
            *(np.zeros((0, _LEAST_WIDTH), np.int32) for _ in (MEMORY, CORES, SLOTS)),
            np.zeros((0, _LEAST_WIDTH), np.int64),
        ]
        self._may_be_pressed = False
        self.memory_mib: NDArray[np.int32] = np.zeros(0, np.int32)
        """Of each device of the row."""
        self.replicas: NDArray[np.int32] = np.zeros(0, np.int32)
        """Zero where devices are not advertised more than once."""
        self.slots: NDArray[np.int32] = np.zeros(0, np.int32)
        self.cut: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Rows whose devices are cut into instances on demand."""
        self.islands: NDArray[np.int16] = np.zeros((0, _LEAST_WIDTH), np.int16)
        self.numa: NDArray[np.int16] = np.zeros((0, _LEAST_WIDTH), np.int16)
        self.numa_cores_milli: NDArray[np.int32] = np.zeros((0, MOST_NUMA), np.int32)
        self.layouts: dict[int, Layout] = {}
        """Of the rows that are not plain."""
        self.odd: dict[int, Layout] = {}
        """Of the rows whose summaries are not those of plain devices: replicated, or cut into instances."""
        self.strict: dict[int, Layout] = {}
        """Of the rows whose kubelet turns pods away for where their devices lie."""
        self.mig_single: dict[int, Layout] = {}
        """Of the rows whose GPUs are MIG instances under the name of whole ones."""
        self.overloaded: set[int] = set()
        """Rows with a device of which more is requested than it has, nominations included."""
        self._nominations: dict[int, list[DeviceGrant]] = {}
        """Amounts for which pending pods are nominated while other pods still hold them."""

    @property
    def width(self) -> int:
        return int(self.compute.shape[1])

    def layout(self, row: int) -> Layout:
        return self.layouts.get(row, PLAIN)

    def grow(self, rows: int) -> None:
        self.count = grown(self.count, rows)
        self.full = grown(self.full, rows)
        self.memory_mib = grown(self.memory_mib, rows)
        self.replicas = grown(self.replicas, rows)
        self.slots = grown(self.slots, rows, SLOTS_PER_DEVICE)
        self.cut = grown(self.cut, rows)
        self.islands = grown(self.islands, rows, UNKNOWN)
        self.numa = grown(self.numa, rows, UNKNOWN)
        self.numa_cores_milli = grown(self.numa_cores_milli, rows, UNKNOWN)
        self._replace([grown(plane, rows) for plane in self.planes])

    def put(self, row: int, count: int, layout: Layout = PLAIN) -> None:
        """Set which devices the row has; what is taken on devices that stay, stays taken."""
        if count > self.width:
            self._widen(-(-count // _LEAST_WIDTH) * _LEAST_WIDTH)
        if count == int(self.count[row]) and layout == self.layout(row):
            return
        before = self._pressures(row)
        full = np.zeros(self.width, np.int32)
        full[:count] = FULL_MILLI
        full[[device for device in (*layout.mig_devices, *layout.broken) if device < count]] = 0
        self.compute[row] += full - self.full[row]
        self.full[row] = full
        self.count[row] = count
        self._put_layout(row, layout)
        self._follow(row, before, self._pressures(row))
        self._left(row)

    def clear(self, row: int) -> None:
        for plane in self.planes:
            plane[row] = 0
        self.full[row] = 0
        self.count[row] = 0
        self._put_layout(row, PLAIN)
        self.overloaded.discard(row)

    def nominated(self, plane: int, row: int) -> list[int]:
        """The nominated amounts of one plane, per device slot of a row; empty where there are none."""
        amounts: list[int] = []
        for grant in self._nominations.get(row, ()):
            amounts = amounts or [0] * self.width
            for device, its_plane, amount in grant.parts:
                if its_plane == plane:
                    amounts[device] += amount
        if plane != COMPUTE or not amounts or not self._may_be_pressed:
            return amounts
        pressed = self._pressures(row) or [0] * self.width
        beside = self._pressures(row, {each: self.nominated(each, row) for each in (MEMORY, CORES, SLOTS)})
        return [each + more - less for each, more, less in zip(amounts, pressed, beside or amounts, strict=True)]

    def take(self, row: int, grant: DeviceGrant) -> list[int]:
        """Subtract a plain grant; returns the compute left on each device, as `free` has it."""
        compute = self.compute
        left: list[int] = compute[row].tolist()
        for device, _, amount in grant.parts:
            compute[row, device] = left[device] = rest = left[device] - amount
            if rest < 0:
                self.overloaded.add(row)
        return balanced(left, self.nominated(COMPUTE, row)) if row in self.overloaded else left

    def give(self, row: int, grant: DeviceGrant) -> list[int]:
        """Exactly undo `take`."""
        compute = self.compute
        left: list[int] = compute[row].tolist()
        for device, _, amount in grant.parts:
            compute[row, device] = left[device] = left[device] + amount
        return self._left(row) if row in self.overloaded else left

    def take_any(self, row: int, grant: DeviceGrant, *, nominated: bool = False) -> list[int]:
        """As `take`, for grants from any plane: COMPUTE follows. `nominated`: others hold it still."""
        self._may_be_pressed |= not grant.is_plain()
        before = self._pressures(row)
        if nominated:
            self._nominations.setdefault(row, []).append(grant)
        for device, plane, amount in grant.parts:
            self.planes[plane][row, device] -= amount
        self._follow(row, before, self._pressures(row))
        return self._left(row)

    def give_any(self, row: int, grant: DeviceGrant, *, nominated: bool = False) -> list[int]:
        """Exactly undo `take_any`."""
        before = self._pressures(row)
        if nominated:
            self._nominations[row].remove(grant)
            if not self._nominations[row]:
                del self._nominations[row]
        for device, plane, amount in grant.parts:
            self.planes[plane][row, device] += amount
        self._follow(row, before, self._pressures(row))
        return self._left(row)

    def free(self, row: int) -> list[int]:
        """Compute that can be had of each device slot of a row; on overloaded rows less than COMPUTE says."""
        left: list[int] = self.compute[row].tolist()
        return balanced(left, self.nominated(COMPUTE, row)) if row in self.overloaded else left

    def free_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """`free` of many rows, one line per row."""
        left = self.compute.take(rows, axis=0)
        if not self.overloaded:
            return left
        lines = np.isin(rows, list(self.overloaded)).nonzero()[0].tolist()
        return balanced_rows(left, {line: self.nominated(COMPUTE, rows.item(line)) for line in lines})

    def sum_left(self, row: int) -> int:
        """What is left of all devices together, below zero where more is asked than there is."""
        return int(self.compute[row].sum())

    def lacks(self, row: int) -> bool:
        """Whether pods on the row together request more of its devices than it has, without nominations."""
        return self.sum_left(row) + sum(self.nominated(COMPUTE, row)) < 0

    def is_overloaded(self, row: int) -> bool:
        """Whether more is requested of some device, slot or slice than it has, without nominations."""
        if row in self.overloaded and self._is_below_zero(self.compute[row], self.nominated(COMPUTE, row)):
            return True
        left = self.planes[SLOTS][row] + self.slots.item(row)
        if not self.replicas.item(row) and self._is_below_zero(left, self.nominated(SLOTS, row)):
            return True
        if not self.cut.item(row):
            return False
        taken, nominated = self.taken(SLICES, row), self.nominated(SLICES, row)
        return any(map(is_held_twice, map(sub, taken, nominated) if nominated else taken))

    def _is_below_zero(self, left: ControlPlane, nominated: list[int]) -> bool:
        return bool((left + np.array(nominated) < 0 if nominated else left < 0).any())

    def taken(self, plane: int, row: int) -> list[int]:
        """What was taken from one of the other planes, per device slot of a row."""
        amounts: list[int] = (-self.planes[plane][row]).tolist()
        return amounts

    def pressure(self, row: int) -> list[int]:
        """By how much COMPUTE is lower than asks for compute alone have made it."""
        return self._pressures(row) or [0] * self.width

    def is_pressed(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where more than compute is taken: what is free there after a termination does not add up."""
        pressed = np.zeros(len(rows), np.bool_)
        if self._may_be_pressed:
            for plane in (MEMORY, CORES, SLOTS):
                pressed |= self.planes[plane][rows].any(axis=1)
        return pressed

    def _left(self, row: int) -> list[int]:
        left: list[int] = self.compute[row].tolist()
        if min(left) >= 0:
            if self.overloaded:
                self.overloaded.discard(row)
            return left
        self.overloaded.add(row)
        return balanced(left, self.nominated(COMPUTE, row))

    def _pressures(self, row: int, beside: Mapping[int, list[int]] | None = None) -> list[int]:
        """Empty when nothing presses, which is nearly always. `beside` says what of the planes is left out."""
        memory, cores, slots = self.planes[MEMORY][row], self.planes[CORES][row], self.planes[SLOTS][row]
        if beside is not None:
            memory, cores, slots = memory + beside[MEMORY], cores + beside[CORES], slots + beside[SLOTS]
        if not (memory.any() or cores.any() or slots.any()):
            return []
        capacity = int(self.memory_mib[row])
        replicas = int(self.replicas[row])
        return [
            max(part(-mib, capacity), -core, part(-slot, replicas) if replicas else min(-slot, 1))
            for mib, core, slot in zip(memory.tolist(), cores.tolist(), slots.tolist(), strict=True)
        ]

    def _follow(self, row: int, before: Sequence[int], after: Sequence[int]) -> None:
        """COMPUTE falls as the pressure rises."""
        if not before and not after:
            return
        width = self.width
        change = np.array(after or [0] * width) - np.array(before or [0] * width)
        self.compute[row] -= change.astype(np.int32)

    def _put_layout(self, row: int, layout: Layout) -> None:
        self.memory_mib[row] = layout.memory_mib
        self.replicas[row] = layout.replicas if layout.is_replicated() else 0
        self.slots[row] = layout.slots
        self.cut[row] = bool(layout.mig)
        for column, values in (
            (self.islands, layout.islands),
            (self.numa, layout.numa),
            (self.numa_cores_milli, layout.numa_cores_milli),
        ):
            line = column[row]
            line[:] = UNKNOWN
            line[: len(values)] = values[: len(line)]
        for kept, belongs in (
            (self.layouts, layout != PLAIN),
            (self.odd, layout.is_replicated() or bool(layout.mig or layout.mig_devices or layout.broken)),
            (self.strict, layout.is_strict()),
            (self.mig_single, layout.is_mig_single),
        ):
            if belongs:
                kept[row] = layout
            else:
                kept.pop(row, None)

    def _widen(self, width: int) -> None:
        self._replace([widened(plane, width) for plane in self.planes])
        self.full = widened(self.full, width)
        for name in ("islands", "numa"):
            column = getattr(self, name)
            wider = np.full((len(column), width), UNKNOWN, np.int16)
            wider[:, : column.shape[1]] = column
            setattr(self, name, wider)

    def _replace(self, planes: list[ControlPlane]) -> None:
        self.planes = planes
        self.compute = planes[COMPUTE]


def part(amount: int, whole: int) -> int:
    """Thousandths that an amount is of a whole, rounded up; of an unknown whole it is all."""
    if amount <= 0:
        return 0
    return -(-amount * FULL_MILLI // whole) if whole else FULL_MILLI
