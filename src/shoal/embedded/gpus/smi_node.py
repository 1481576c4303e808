"""Selects what nvidia-smi reports on a simulated node: all devices on the node itself, the granted ones in a
container."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut
from shoal.devices.product_names import device_name
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.readings import read_gpu, read_instance
from shoal.embedded.gpus.smi_view import GpuView, Instance, Process, SeenGpu

_PROGRAM = "python3"
_DOUBLE_BIT = 48


def view_of_node(device_manager: DeviceManager, at_s: float, at: str = "") -> GpuView:
    gpus = (_seen(device_manager, slot, slot.index, None, at_s) for slot in device_manager.machine.gpus)
    return _view(device_manager, tuple(gpus), at)


def view_of_container(device_manager: DeviceManager, uid: str, container: str, at_s: float, at: str = "") -> GpuView:
    """Load and memory of a shared GPU include other programs; their processes are in another namespace and not
    listed.
    """
    devices = device_manager.devices_of(uid, container)
    own = {device.physical for device in devices}
    slots = [device_manager.machine.gpus[index] for index in sorted({device.gpu for device in devices})]
    gpus = (_seen(device_manager, slot, number, (own, uid), at_s) for number, slot in enumerate(slots))
    return _view(device_manager, tuple(gpus), at)


def _view(device_manager: DeviceManager, gpus: tuple[SeenGpu, ...], at: str) -> GpuView:
    software = device_manager.software
    return GpuView(gpus, at, software.driver, software.cuda)


def _seen(
    device_manager: DeviceManager, slot: GpuSlot, number: int, own: tuple[set[str], str] | None, at_s: float
) -> SeenGpu:
    gpu, reading, fault = (
        device_manager.gpus[slot.index],
        read_gpu(device_manager, slot, at_s),
        device_manager.xid(slot.index),
    )
    cuts = [one for one in gpu.cuts if own is None or one.uuid in own[0]]
    return SeenGpu(
        index=number,
        name=device_name(slot.product),
        memory_mib=slot.memory_mib,
        uuid=slot.uuid,
        pci=slot.pci,
        model=slot.model,
        serial=slot.serial,
        numa=slot.numa,
        island=slot.island,
        used_mib=reading.used_mib,
        reserved_mib=reading.reserved_mib,
        util_percent=round(100 * reading.util),
        temperature_c=reading.temperature_c,
        memory_temperature_c=reading.memory_temperature_c,
        power_w=reading.power_w,
        power_limit_w=reading.power_limit_w,
        sm_mhz=reading.sm_mhz,
        memory_mhz=reading.memory_mhz,
        double_bit_errors=int(fault is not None and fault.number == _DOUBLE_BIT),
        is_mig=gpu.is_mig,
        is_lost=fault is not None and fault.is_lost,
        instances=tuple(_instance(device_manager, slot, one, at_s) for one in cuts),
        processes=tuple(processes_on(device_manager, slot, cuts, own[1] if own is not None else None)),
    )


def _instance(device_manager: DeviceManager, slot: GpuSlot, one: Cut, at_s: float) -> Instance:
    reading = read_instance(device_manager, slot, one.uuid, one.memory_mib, at_s)
    return Instance(
        profile=one.profile.name,
        uuid=one.uuid,
        number=one.instance,
        profile_id=one.profile.id,
        start=one.start,
        width=one.profile.width,
        memory_mib=one.memory_mib,
        used_mib=reading.used_mib,
        sm=one.profile.sm or 0,
    )


def processes_on(
    device_manager: DeviceManager, slot: GpuSlot, cuts: Iterable[Cut], uid: str | None = None
) -> Iterable[Process]:
    """The processes on a GPU and on these instances of it, of one pod or of all."""
    for physical, instance in ((slot.uuid, None), *((one.uuid, one.instance) for one in cuts)):
        for program in device_manager.programs.on(physical):
            if uid is None or program.uid == uid:
                used = sum(one.memory_mib for one in program.slots if one.device.physical == physical)
                yield Process(program.pid, _PROGRAM, used, instance)
