"""Reads the devices behind virtual GPUs, from HAMi's register on the node or from what Volcano's device plugin
advertises.

Such nodes advertise slots, ten to a device by default: taken for devices, each GPU would be given away ten times. A
register that cannot be read is no register; it was written by a program, and the node is still there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from shoal.devices.layout import SLOTS_PER_DEVICE
from shoal.engine.device_notation import names
from shoal.engine.devices.planes import MOST_NUMA
from shoal.units.numbers import whole_of

_OLD_FIELDS = (7, 9)


class Register(NamedTuple):
    gpus: int
    memory_mib: int
    slots: int
    numa: tuple[int, ...] = ()


class _Device(msgspec.Struct, frozen=True):
    id: str = ""
    count: int = SLOTS_PER_DEVICE
    devmem: int = 0
    numa: int = -1
    health: bool = True


def register_of(annotations: Mapping[str, str], allocatable: Mapping[str, int]) -> Register | None:
    """The node's devices, if it is one for virtual GPUs."""
    listed = _listed(annotations.get(names.HAMI_REGISTER, ""))
    devices = [device for device in listed if device.health]
    if listed and not devices:
        return Register(0, 0, SLOTS_PER_DEVICE)
    if devices:
        numa = tuple(device.numa if 0 <= device.numa < MOST_NUMA else -1 for device in devices)
        known = numa if any(node >= 0 for node in numa) else ()
        return Register(len(devices), min(d.devmem for d in devices), min(d.count for d in devices), known)
    slots = allocatable.get(names.VGPU, 0)
    if not slots:
        return None
    gpus = allocatable.get(names.VGPU_CORES, 0) // 100 or -(-slots // SLOTS_PER_DEVICE)
    return Register(gpus, allocatable.get(names.VGPU_MEMORY, 0) // gpus, max(slots // gpus, 1))


def registered_ids(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """What the healthy devices of HAMi's register are called, in its order."""
    return tuple(device.id for device in _listed(annotations.get(names.HAMI_REGISTER, "")) if device.health)


def _listed(text: str) -> list[_Device]:
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text, type=list[_Device])
        except msgspec.DecodeError:
            return []
    devices = []
    for part in text.split(":"):
        fields = part.split(",")
        if len(fields) not in _OLD_FIELDS:
            continue
        slots, memory_mib, numa = whole_of(fields[1]), whole_of(fields[2]), whole_of(fields[5])
        if slots is not None and memory_mib is not None:
            devices.append(_Device(fields[0], slots, memory_mib, -1 if numa is None else numa, fields[6] == "true"))
    return devices
