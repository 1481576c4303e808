"""Lists the kinds of device requests, and finds the kind that handles a request. To add one: a struct in `demand`, a
class, and a line here.
"""

from __future__ import annotations

from typing import Any

from shoal.engine.device_demand import (
    Demand,
    DeviceGrant,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)
from shoal.engine.devices.kind import DeviceKind, DevicePositions
from shoal.engine.devices.mig import MigKind
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.devices.planes import DevicePlanes
from shoal.engine.devices.replicas import ReplicaKind
from shoal.engine.devices.shares import FusedShare, MemoryKind, SeveralShares
from shoal.engine.devices.virtual import VirtualKind
from shoal.engine.devices.whole import Whole

KINDS: dict[type[Demand], DeviceKind[Any]] = {
    WholeGpus: Whole(),
    GpuShare: FusedShare(),
    GpuShares: SeveralShares(),
    MemoryShares: MemoryKind(),
    VirtualGpus: VirtualKind(),
    Replicas: ReplicaKind(),
    MigTiles: MigKind(),
}


def kind_of(demand: Demand) -> DeviceKind[Any]:
    return KINDS[type(demand)]


def grant_held(planes: DevicePlanes, row: int, demand: Demand, positions: DevicePositions) -> DeviceGrant | None:
    """What a pod that runs on a row holds by its annotation; None where the annotation is missing or impossible."""
    bench = NodeDeviceState(planes, row)
    if not positions or not all(0 <= device < bench.count for device, _ in positions):
        return None
    return kind_of(demand).held(bench, demand, positions)


def grant_there(planes: DevicePlanes, row: int, demand: Demand) -> DeviceGrant:
    """A guess at what a pod holds that runs on a row: what would fit, or where it must be."""
    bench, kind = NodeDeviceState(planes, row), kind_of(demand)
    return kind.tightest(bench, demand) or kind.forced(bench, demand)
