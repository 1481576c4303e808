"""Replicas of time-sliced or MPS-shared GPUs, asked for by the name that nodes gave them.

They are handed out as the device plugin does it, one by one from the device with the fewest in use: nothing is gained
by keeping a device empty that no pod can have exclusively.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from shoal.engine.device_demand import SLOTS, DeviceGrant, Replicas, plane_grant
from shoal.engine.devices.columns import DeviceColumns, Ints
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.devices.node_devices import NodeDeviceState

_NAME = "nvidia.com/gpu.shared"
"""Matched by name: a node may have enough replicas and advertise them as `nvidia.com/gpu`."""


class ReplicaKind:
    def least(self, _demand: Replicas) -> dict[int, int]:
        return {}

    def charged(self, _demand: Replicas) -> dict[int, int]:
        return {}

    def tightest(self, bench: NodeDeviceState, demand: Replicas) -> DeviceGrant | None:
        layout = bench.layout
        if not layout.renamed or (layout.one_per_request and demand.count > 1):
            return None
        return spread_replicas(bench, range(bench.count), demand.count)

    def forced(self, bench: NodeDeviceState, demand: Replicas) -> DeviceGrant:
        return forced_replicas(bench, range(bench.count), demand.count)

    def held(self, bench: NodeDeviceState, demand: Replicas, positions: DevicePositions) -> DeviceGrant | None:
        return held_replicas(bench, positions, demand.count)

    def asked(self, demand: Replicas) -> int:
        return demand.count

    def capacity(self, columns: DeviceColumns, _demand: Replicas) -> Ints:
        return self._where_renamed(columns, columns.free_replicas())

    def most(self, columns: DeviceColumns, _demand: Replicas) -> Ints:
        return self._where_renamed(columns, columns.most_units())

    def lack(self, demand: Replicas) -> tuple[str, str]:
        return f"{demand.count} free {_NAME}", _NAME

    def _where_renamed(self, columns: DeviceColumns, units: Ints) -> Ints:
        renamed = {row: layout for row, layout in columns.planes.odd.items() if layout.renamed}
        sums: Ints = np.where(np.isin(columns.rows, list(renamed)), units.sum(axis=1), 0)
        single = [row for row, layout in renamed.items() if layout.one_per_request]
        return np.where(np.isin(columns.rows, single), np.minimum(sums, 1), sums) if single else sums


def spread_replicas(bench: NodeDeviceState, devices: Iterable[int], count: int) -> DeviceGrant | None:
    """`count` free replicas on these devices, or nothing."""
    free = bench.free_replicas()
    if sum(free[device] for device in devices) < count:
        return None
    return _spread(bench, {device: free[device] for device in devices}, count)


def forced_replicas(bench: NodeDeviceState, devices: Iterable[int], count: int) -> DeviceGrant:
    """The same for a pod that is there whether there is capacity or not."""
    return _spread(bench, dict.fromkeys(devices, count), count)


def held_replicas(bench: NodeDeviceState, positions: DevicePositions, count: int) -> DeviceGrant:
    """The replicas that a pod holds by its annotation; of some devices only, as many as it has, where they are not
    counted.
    """
    held = Counter(device for device, _ in positions)
    if held.total() == count:
        return plane_grant(tuple((device, SLOTS, amount) for device, amount in sorted(held.items())))
    return forced_replicas(bench, sorted(held), count)


def _spread(bench: NodeDeviceState, most: dict[int, int], count: int) -> DeviceGrant:
    used = bench.taken(SLOTS)
    taken = dict.fromkeys(most, 0)
    for _ in range(count if most else 0):
        open_ = (device for device in most if taken[device] < most[device])
        taken[min(open_, key=lambda device: (used[device] + taken[device], device))] += 1
    return plane_grant(tuple((device, SLOTS, amount) for device, amount in sorted(taken.items()) if amount))
