"""Summarizes devices in the record of a node, where that is more than counting empty ones.

Hidden behind three columns and those of MIG profiles. `GPU_WHOLE` is how many `nvidia.com/gpu` one pod can still get:
free replicas, on a node that advertises replicas. The column of a MIG profile is how many more instances the free
slices of the node would give, on a node whose devices are cut on demand. Both are functions of the planes alone, and
changes are booked as differences, so what was booked beside them (capacity set aside for a DaemonSet) stays.

Rejected: one filter for each such node. It would run for every whole-GPU ask on every node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.data.mig import RESOURCE_PREFIX
from shoal.devices.layout import Layout
from shoal.engine import facts
from shoal.engine.charges import Charge
from shoal.engine.device_demand import FULL_MILLI, DeviceGrant
from shoal.engine.devices.mig import mig_capacity, most_mig
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.devices.planes import DevicePlanes

Record = NDArray[np.int64]
Capacities = dict[int, int]


class Summaries:
    """The device columns of odd rows, and of grants that take more than compute."""

    __slots__ = ("_devices", "_profiles")

    def __init__(self, devices: DevicePlanes) -> None:
        self._devices = devices
        self._profiles: dict[int, str] = {}
        """MIG profile by column."""

    def take(self, row: int, free: Record, charge: Charge, grant: DeviceGrant, *, nominated: bool) -> int:
        """Take the grant after the charge was taken; returns by how much the row's free compute changed."""
        devices = self._devices
        milli, capacities = devices.sum_left(row), self._mig_capacities(row)
        left = devices.take_any(row, grant, nominated=nominated)
        self._update_columns(row, free, left, capacities, charge.taken)
        # A plain grant is booked by its charge, as on plain rows: the row may be one when the pod goes.
        change = -charge.gpu_milli if grant.is_plain() else devices.sum_left(row) - milli
        free[facts.GPU_MILLI] += change + charge.gpu_milli
        return change

    def give(self, row: int, free: Record, charge: Charge, grant: DeviceGrant, *, nominated: bool) -> int:
        """Exactly undo `take`, after the charge was given back."""
        devices = self._devices
        milli, capacities = devices.sum_left(row), self._mig_capacities(row)
        left = devices.give_any(row, grant, nominated=nominated)
        self._update_columns(row, free, left, capacities, -charge.taken)
        change = charge.gpu_milli if grant.is_plain() else devices.sum_left(row) - milli
        free[facts.GPU_MILLI] += change - charge.gpu_milli
        return change

    def put(
        self, row: int, count: int, layout: Layout, lines: tuple[Record, Record, Record], held: list[Charge]
    ) -> int:
        """The row's devices are these from now on.

        `lines` are its free amounts, totals before and totals now, both free amounts and totals without devices yet;
        returns by how much the row's free compute changed.
        """
        devices = self._devices
        free, before, total = lines
        milli = devices.sum_left(row)
        cut = bool(devices.layout(row).mig or layout.mig)
        asides = self._asides(row, free, before, held) if cut else {}
        devices.put(row, count, layout)
        left = devices.free(row)
        change = devices.sum_left(row) - milli
        total[facts.GPU_MILLI] = full = int(devices.full[row].sum())
        total[facts.GPU_WHOLE] = self._most_whole(row)
        total[facts.GPU_BEST] = FULL_MILLI if full else 0
        if layout.mig:
            for column, profile in self._profiles.items():
                total[column] = most_mig(devices, row, profile)
        kept = int(free[facts.GPU_MILLI])
        free += total - before
        free[facts.GPU_MILLI] = kept + change
        free[facts.GPU_WHOLE] = self._whole(row, left)
        free[facts.GPU_BEST] = max(left)
        for column, aside in asides.items():
            free[column] = self._unbooked(row, column, total, held) - aside
        return change

    def add_profile(self, resource: str, column: int, free: Record, total: Record) -> None:
        """A pod asked for a MIG profile for the first time: nodes that can be cut to it have some."""
        if not resource.startswith(RESOURCE_PREFIX):
            return
        profile = self._profiles[column] = resource.removeprefix(RESOURCE_PREFIX)
        for row, layout in self._devices.odd.items():
            if layout.mig:
                total[row, column] = most_mig(self._devices, row, profile)
                free[row, column] = mig_capacity(self._devices, row, profile)

    def _update_columns(self, row: int, free: Record, left: list[int], before: Capacities, taken: Record) -> None:
        free[facts.GPU_WHOLE] = self._whole(row, left)
        free[facts.GPU_BEST] = max(left)
        for column, capacity in self._mig_capacities(row).items():
            # What the charge took is undone: an instance here may cost more, or less, than one of its kind.
            free[column] += capacity - before[column] + taken[column]

    def _mig_capacities(self, row: int) -> Capacities:
        layout = self._devices.odd.get(row)
        if layout is None or not layout.mig:
            return {}
        return {column: mig_capacity(self._devices, row, profile) for column, profile in self._profiles.items()}

    def _asides(self, row: int, free: Record, total: Record, held: list[Charge]) -> Capacities:
        """What is booked in the columns of profiles beside the pods that are there."""
        return {column: self._unbooked(row, column, total, held) - int(free[column]) for column in self._profiles}

    def _unbooked(self, row: int, column: int, total: Record, held: list[Charge]) -> int:
        if self._devices.layout(row).mig:
            return mig_capacity(self._devices, row, self._profiles[column])
        return int(total[column]) - sum(int(charge.taken[column]) for charge in held)

    def _whole(self, row: int, left: list[int]) -> int:
        layout = self._devices.odd.get(row)
        if layout is None or not layout.is_replicated():
            return left.count(FULL_MILLI)
        if layout.renamed:
            return 0
        free = sum(NodeDeviceState(self._devices, row).free_replicas())
        return min(free, 1) if layout.one_per_request else free

    def _most_whole(self, row: int) -> int:
        devices = int(np.count_nonzero(self._devices.full[row]))
        layout = self._devices.layout(row)
        if layout.renamed:
            return 0
        return min(devices, 1) if layout.one_per_request else devices * layout.replicas
