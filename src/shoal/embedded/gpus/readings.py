"""Computes the sensor readings of a GPU while programs run, for the exporter and for nvidia-smi.

Values follow from the running programs: the load from their shares, power and temperature from the load and the board's
limit. A small periodic variation is added, so that graphs look realistic. It depends only on the given time and the
GPU; two reads for one time give equal values.
"""

from __future__ import annotations

import math
import zlib

from shoal.data.gpus import Model, find_model
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.readings import Reading
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.gpu_processes import GpuProcesses

_RIPPLE = 0.02
_RIPPLE_PERIOD_S = 97.0
_IDLE_POWER = 0.12
_IDLE_C, _WARMTH_C, _MEMORY_WARMER_C = 29, 46, 7
_RESERVED = 0.0066
_DEFAULT_POWER_W = 300
_IDLE_SM_MHZ = 345
_SM_MHZ = {7: 1530, 8: 1410, 9: 1980, 10: 1965, 12: 2430}
_MEMORY_MHZ = {"HBM2": 877, "HBM2e": 1593, "HBM3": 2619, "HBM3e": 3201, "GDDR6": 6251, "GDDR7": 12481}


def read_gpu(device_manager: DeviceManager, slot: GpuSlot, at_s: float) -> Reading:
    gpu = device_manager.gpus[slot.index]
    used = sum(device_manager.programs.memory_mib(uuid) for uuid in [*(one.uuid for one in gpu.cuts), slot.uuid])
    return _reading(slot, gpu_load(device_manager, slot, at_s), used, slot.memory_mib)


def gpu_load(device_manager: DeviceManager, slot: GpuSlot, at_s: float) -> float:
    """The load of a whole GPU, 0 to 1."""
    cuts = device_manager.gpus[slot.index].cuts
    if not cuts:
        return rippled(load(device_manager.programs, slot.uuid), slot.uuid, at_s)
    util = sum(load(device_manager.programs, one.uuid) * one.profile.compute for one in cuts) / _compute_slices(slot)
    return rippled(min(util, 1.0), slot.uuid, at_s)


def power_w(model: Model | None, util: float) -> float:
    limit = model.power_w if model is not None else _DEFAULT_POWER_W
    return limit * (_IDLE_POWER + (1 - _IDLE_POWER) * util * 0.95)


def read_instance(device_manager: DeviceManager, slot: GpuSlot, uuid: str, memory_mib: int, at_s: float) -> Reading:
    util = rippled(load(device_manager.programs, uuid), uuid, at_s)
    return _reading(slot, util, device_manager.programs.memory_mib(uuid), memory_mib)


def _compute_slices(slot: GpuSlot) -> int:
    model = find_model(slot.model)
    facts = model.mig_layout() if model is not None else None
    return facts.compute_slices if facts is not None else 1


def load(programs: GpuProcesses, physical: str) -> float:
    return min(sum(programs.share(program, physical) for program in programs.on(physical)), 1.0)


def rippled(value: float, name: str, at_s: float) -> float:
    """The value with a variation of 2 %, at different times for each GPU; 0 stays 0."""
    if not value:
        return 0.0
    phase = zlib.crc32(name.encode()) % 628 / 100
    swing = math.sin(2 * math.pi * at_s / _RIPPLE_PERIOD_S + phase)
    return min(max(value * (1 + _RIPPLE * swing), 0.0), 1.0)


def _reading(slot: GpuSlot, util: float, used_mib: int, memory_mib: int) -> Reading:
    model = find_model(slot.model)
    limit = model.power_w if model is not None else _DEFAULT_POWER_W
    major = int(model.compute_capability.partition(".")[0]) if model is not None else 0
    warm = round(_IDLE_C + slot.index % 4 + _WARMTH_C * util)
    reserved = round(memory_mib * _RESERVED)
    used = min(used_mib, memory_mib - reserved)
    return Reading(
        util=util,
        used_mib=used,
        reserved_mib=reserved,
        free_mib=memory_mib - reserved - used,
        power_w=power_w(model, util),
        power_limit_w=limit,
        temperature_c=warm,
        memory_temperature_c=warm + _MEMORY_WARMER_C,
        sm_mhz=_SM_MHZ.get(major, 1500) if util > 0 else _IDLE_SM_MHZ,
        memory_mhz=_MEMORY_MHZ.get(model.memory_type, 2000) if model is not None else 2000,
    )
