"""Computes the health of the GPUs of a simulated node by the rules of the node agent, from their present Xids.

A simulated GPU is mended at once, so nothing of a former fault is remembered.
"""

from __future__ import annotations

from shoal.devices.device_health import DeviceHealth, NodeHealth
from shoal.devices.port import LostGpu, XidEvent
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.simulated_driver import SimulatedDriver


def simulated_health(manager: DeviceManager, driver: SimulatedDriver, at_s: float) -> tuple[DeviceHealth, ...]:
    slots = manager.machine.gpus
    faults = {slot.uuid: fault for slot in slots if (fault := manager.xid(slot.index)) is not None}
    if not faults:
        return tuple(DeviceHealth(slot.index, slot.uuid) for slot in slots)
    health = NodeHealth()
    readings = {uuid: driver.read(uuid) for uuid in faults}
    health.update(driver.gpus(), {uuid: one for uuid, one in readings.items() if not isinstance(one, LostGpu)}, at_s)
    for uuid, fault in faults.items():
        health.record(XidEvent(uuid, fault.number), at_s)
    return health.all()
