"""Chooses devices on a node independent of a score: the tightest fit, or at random."""

from __future__ import annotations

from typing import Final

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant, GpuShare, WholeGpus, compute_grant
from shoal.engine.devices.kinds import kind_of
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.devices.whole import first_empty


class TightestDevice:
    """Chooses the device that has least left afterwards; whole GPUs are the empty ones of lowest number."""

    def grant(self, cluster: Cluster, ask: Ask, row: int, _draw: int) -> DeviceGrant | None:
        demand = ask.devices
        if demand is None:
            return None
        planes = cluster.devices
        if type(demand) is WholeGpus and row not in planes.layouts and not (demand.island or demand.numa):
            # Nearly every ask of nearly every node, so without a bench to lay it out on.
            return first_empty(planes.free(row), demand.count)
        return kind_of(demand).tightest(NodeDeviceState(planes, row), demand)


class RandomDevice:
    """Any device that fits, each with the same chance."""

    def grant(self, cluster: Cluster, ask: Ask, row: int, draw: int) -> DeviceGrant | None:
        if not isinstance(ask.devices, GpuShare):
            return TIGHTEST.grant(cluster, ask, row, draw)
        milli = ask.devices.milli
        fitting = [device for device, left in enumerate(cluster.devices.free(row)) if left >= milli]
        return compute_grant((fitting[draw % len(fitting)],), milli) if fitting else None


TIGHTEST: Final = TightestDevice()
RANDOM: Final = RandomDevice()
