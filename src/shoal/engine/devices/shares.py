"""Fits requests for parts of devices: by compute, of one device or of several, and by memory.

Two pieces on two devices never make one piece: 0.6 and 0.6 free do not host 0.8, and twice 0.5 wants two devices.
Memory is converted on the device at hand, from all that is taken there, so three thirds fill a device exactly.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.device_demand import (
    FULL_MILLI,
    MEMORY,
    DeviceGrant,
    GpuShare,
    GpuShares,
    MemoryShares,
    compute_grant,
    plane_grant,
)
from shoal.engine.devices.columns import DeviceColumns, Ints, how_many, largest
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.devices.node_devices import NodeDeviceState, tightest
from shoal.engine.facts import GPU_BEST, GPU_MILLI


class FusedShare:
    """The fused record is exact for it."""

    def least(self, demand: GpuShare) -> dict[int, int]:
        return {GPU_BEST: demand.milli}

    def charged(self, demand: GpuShare) -> dict[int, int]:
        return {GPU_MILLI: demand.milli}

    def tightest(self, bench: NodeDeviceState, demand: GpuShare) -> DeviceGrant | None:
        free = bench.compute
        fitting = [left for left in free if left >= demand.milli]
        return compute_grant((free.index(min(fitting)),), demand.milli) if fitting else None

    def forced(self, bench: NodeDeviceState, demand: GpuShare) -> DeviceGrant:
        return compute_grant(bench.emptiest(1), demand.milli)

    def held(self, _bench: NodeDeviceState, demand: GpuShare, positions: DevicePositions) -> DeviceGrant | None:
        return compute_grant((positions[0][0],), demand.milli) if len(positions) == 1 else None

    def asked(self, _demand: GpuShare) -> int:
        return 0

    def capacity(self, columns: DeviceColumns, _demand: GpuShare) -> Ints:
        return largest(columns.compute)

    def most(self, columns: DeviceColumns, _demand: GpuShare) -> Ints:
        return largest(columns.empty)

    def lack(self, demand: GpuShare) -> tuple[str, str]:
        return f"a GPU with {demand.milli} thousandths free", "thousandths of one GPU"


class SeveralShares:
    def least(self, _demand: GpuShares) -> dict[int, int]:
        return {}

    def charged(self, demand: GpuShares) -> dict[int, int]:
        return {GPU_MILLI: demand.count * demand.milli}

    def tightest(self, bench: NodeDeviceState, demand: GpuShares) -> DeviceGrant | None:
        free = bench.compute
        fitting = [device for device, left in enumerate(free) if left >= demand.milli]
        devices = tightest(free, fitting, demand.count)
        return None if devices is None else compute_grant(devices, demand.milli)

    def forced(self, bench: NodeDeviceState, demand: GpuShares) -> DeviceGrant:
        return compute_grant(bench.emptiest(demand.count), demand.milli)

    def held(self, _bench: NodeDeviceState, demand: GpuShares, positions: DevicePositions) -> DeviceGrant | None:
        devices = tuple(sorted({device for device, _ in positions}))
        return compute_grant(devices, demand.milli) if len(devices) == demand.count else None

    def asked(self, demand: GpuShares) -> int:
        return demand.count

    def capacity(self, columns: DeviceColumns, demand: GpuShares) -> Ints:
        return how_many(columns.compute >= demand.milli)

    def most(self, columns: DeviceColumns, demand: GpuShares) -> Ints:
        return how_many(columns.empty >= demand.milli)

    def lack(self, demand: GpuShares) -> tuple[str, str]:
        what = f"with {demand.milli} thousandths free"
        return f"{demand.count} GPUs {what}", f"GPUs {what}"


class MemoryKind:
    def least(self, _demand: MemoryShares) -> dict[int, int]:
        return {}

    def charged(self, _demand: MemoryShares) -> dict[int, int]:
        return {}

    def tightest(self, bench: NodeDeviceState, demand: MemoryShares) -> DeviceGrant | None:
        left = bench.memory_left()
        fitting = [device for device, mib in enumerate(left) if mib >= demand.mib]
        devices = tightest(left, fitting, demand.count)
        return None if devices is None else _memory_grant(devices, demand.mib)

    def forced(self, bench: NodeDeviceState, demand: MemoryShares) -> DeviceGrant:
        return _memory_grant(bench.emptiest(demand.count), demand.mib)

    def held(self, _bench: NodeDeviceState, demand: MemoryShares, positions: DevicePositions) -> DeviceGrant | None:
        devices = tuple(sorted({device for device, _ in positions}))
        return _memory_grant(devices, demand.mib) if len(devices) == demand.count else None

    def asked(self, demand: MemoryShares) -> int:
        return demand.mib if demand.count == 1 else demand.count

    def capacity(self, columns: DeviceColumns, demand: MemoryShares) -> Ints:
        left = columns.unshared() * columns.memory_mib // FULL_MILLI - columns.taken(MEMORY)
        return _largest_or_count(left, demand)

    def most(self, columns: DeviceColumns, demand: MemoryShares) -> Ints:
        return _largest_or_count(columns.empty * columns.memory_mib // FULL_MILLI, demand)

    def lack(self, demand: MemoryShares) -> tuple[str, str]:
        if demand.count == 1:
            return f"a GPU with {demand.mib} MiB free", "MiB of one GPU"
        what = f"with {demand.mib} MiB free"
        return f"{demand.count} GPUs {what}", f"GPUs {what}"


def _memory_grant(devices: tuple[int, ...], mib: int) -> DeviceGrant:
    return plane_grant(tuple((device, MEMORY, mib) for device in devices))


def _largest_or_count(left: Ints, demand: MemoryShares) -> Ints:
    if demand.count == 1:
        return np.maximum(largest(left), 0)
    return how_many(left >= demand.mib)
