"""Devices without a cluster: `bench([1000, 400])` is a node on whose devices so much compute is left."""

from __future__ import annotations

from shoal.devices.layout import PLAIN, Layout
from shoal.engine.device_demand import FULL_MILLI, compute_grant
from shoal.engine.devices.node_devices import NodeDeviceState
from shoal.engine.devices.planes import DevicePlanes


def planes(free: list[int], layout: Layout = PLAIN) -> DevicePlanes:
    """One row, number 0."""
    made = DevicePlanes()
    made.grow(1)
    made.put(0, len(free), layout)
    for device, left in enumerate(free):
        if left != FULL_MILLI:
            made.take(0, compute_grant((device,), FULL_MILLI - left))
    return made


def bench(free: list[int], layout: Layout = PLAIN) -> NodeDeviceState:
    return NodeDeviceState(planes(free, layout), 0)
