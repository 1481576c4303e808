"""Fits requests for MIG instances: counted by name on nodes that advertise fixed ones, created on demand on nodes that
allow it.

The request `nvidia.com/mig-<profile>` is in the ask's requests either way. On a node cut on demand its column says
how many more of that profile the free slices would give (`Cluster` keeps it so), which is exact for one profile; asks
for several profiles are judged together here.
"""

from __future__ import annotations

import numpy as np

from shoal.devices.tiling import HOLDERS_BITS, holders, occupancy, tiling
from shoal.engine.device_demand import NOTHING, SLICES, DeviceGrant, MigTiles, plane_grant
from shoal.engine.devices.columns import DeviceColumns, Ints
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.devices.overload import free_masks
from shoal.engine.devices.planes import DevicePlanes


class MigKind:
    def least(self, _demand: MigTiles) -> dict[int, int]:
        return {}

    def charged(self, _demand: MigTiles) -> dict[int, int]:
        return {}

    def tightest(self, bench: NodeDeviceState, demand: MigTiles) -> DeviceGrant | None:
        layout = bench.layout
        if not layout.mig:
            return NOTHING
        placed = tiling(layout.mig).place(_states(bench), demand.tiles)
        return None if placed is None else _grant(placed)

    def forced(self, bench: NodeDeviceState, demand: MigTiles) -> DeviceGrant:
        layout = bench.layout
        if not layout.mig or not layout.mig_devices:
            return NOTHING
        there = tiling(layout.mig)
        taken = bench.taken(SLICES)
        device = min(layout.mig_devices, key=lambda device: (holders(taken[device]), device))
        masks = [
            there.places(profile)[0]
            for name, count in demand.tiles
            for profile in [there.profile(name)] * count
            if profile is not None
        ]
        return _grant([(device, mask) for mask in masks])

    def held(self, bench: NodeDeviceState, demand: MigTiles, positions: DevicePositions) -> DeviceGrant | None:
        """Spots in the order in which the demand lists its tiles, profile by profile."""
        layout = bench.layout
        if not layout.mig:
            return NOTHING
        there = tiling(layout.mig)
        names = [name for name, count in demand.tiles for _ in range(count)]
        if len(positions) != len(names):
            return None
        placed = []
        for name, (device, start) in zip(names, positions, strict=True):
            profile = there.profile(name)
            if profile is None or start not in profile.starts or device not in layout.mig_devices:
                return None
            placed.append((device, there.places(profile)[profile.starts.index(start)]))
        return _grant(placed)

    def asked(self, demand: MigTiles) -> int:
        return 1 if len(demand.tiles) > 1 else 0

    def capacity(self, columns: DeviceColumns, demand: MigTiles) -> Ints:
        """1 where the tiles fit side by side; nodes with fixed instances are left to the record."""
        planes = columns.planes
        result = np.ones(len(columns.rows), np.int64)
        lines = planes.cut.take(columns.rows).nonzero()[0]
        if len(lines) == 0:
            return result
        # A fleet is in few states: each is judged once.
        taken = columns.taken(SLICES)
        verdicts: dict[tuple[str, tuple[int, ...], bytes, tuple[int, ...]], int] = {}
        for line in lines.tolist():
            row = columns.rows.item(line)
            layout, nominated = planes.layouts[row], planes.nominated(SLICES, row)
            state = (layout.mig, layout.mig_devices, taken[line].tobytes(), tuple(nominated))
            if state not in verdicts:
                there = tiling(layout.mig)
                masks = free_masks(taken[line].tolist(), layout.mig_devices, there.empty, nominated)
                verdicts[state] = int(there.fits(masks, demand.tiles))
            result[line] = verdicts[state]
        return result

    def most(self, columns: DeviceColumns, demand: MigTiles) -> Ints:
        result = np.ones(len(columns.rows), np.int64)
        for line, row in enumerate(columns.rows.tolist()):
            layout = columns.planes.odd.get(row)
            if layout is not None and layout.mig:
                there = tiling(layout.mig)
                result[line] = there.fits([there.empty] * len(layout.mig_devices), demand.tiles)
        return result

    def lack(self, demand: MigTiles) -> tuple[str, str]:
        what = " + ".join(f"{count} x {name}" for name, count in demand.tiles)
        return f"legal MIG places for {what}", f"sets of legal MIG places for {what}"


def mig_capacity(planes: DevicePlanes, row: int, name: str) -> int:
    """How many more instances of a profile the row's devices could be cut into."""
    layout = planes.layout(row)
    there = tiling(layout.mig)
    masks = free_masks(planes.taken(SLICES, row), layout.mig_devices, there.empty, planes.nominated(SLICES, row))
    return sum(there.room(name, mask) for mask in masks)


def most_mig(planes: DevicePlanes, row: int, name: str) -> int:
    """The same, were nothing taken."""
    layout = planes.layout(row)
    there = tiling(layout.mig)
    return len(layout.mig_devices) * there.room(name, there.empty)


def starts_of(grant: DeviceGrant) -> list[tuple[int, int]]:
    """(device, first slice) of every tile of a grant."""
    return [(device, ((amount & -amount).bit_length() - 1) // HOLDERS_BITS) for device, _, amount in grant.parts]


def _states(bench: NodeDeviceState) -> list[tuple[int, int]]:
    layout = bench.layout
    masks = free_masks(bench.taken(SLICES), layout.mig_devices, tiling(layout.mig).empty, bench.nominated(SLICES))
    return list(zip(layout.mig_devices, masks, strict=True))


def _grant(placed: list[tuple[int, int]]) -> DeviceGrant:
    return plane_grant(tuple((device, SLICES, occupancy(mask)) for device, mask in placed))
