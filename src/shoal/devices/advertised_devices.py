"""Lists the devices that the plugin advertises: whole GPUs, MIG instances, and replicas of either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.devices.device_ids import replica_id
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu
from shoal.devices.names import GPU
from shoal.devices.plugin_config import PluginConfig

_PART_OF_INSTANCE = re.compile(r"[0-9]+c\.")


class PhysicalDevice(msgspec.Struct, frozen=True):
    id: str
    resource: str
    physical: str
    """The UUID of its GPU or MIG instance."""
    gpu: int
    numa: int
    island: int
    memory_mib: int
    """The memory of the GPU or instance, for all replicas together."""
    replicas: int = 1
    cut: Cut | None = None


class Problem(msgspec.Struct, frozen=True):
    """Why the plugin does not start."""

    message: str
    refusal: Literal[
        "mps-with-mig",
        "mig-and-full-gpus",
        "mig-gpu-without-instances",
        "more-than-one-profile",
        "no-resource-for-profile",
    ]


class Inventory(msgspec.Struct, frozen=True):
    devices: Mapping[str, tuple[PhysicalDevice, ...]]
    """By resource, in the plugin's order."""
    problem: Problem | None = None
    """None: the plugin has started."""


def inventory(slots: Sequence[GpuSlot], gpus: Sequence[Gpu], config: PluginConfig) -> Inventory:
    problem = _problem(gpus, config)
    if problem is not None:
        return Inventory({}, problem)
    found: dict[str, list[PhysicalDevice]] = {}
    for device in _physical(slots, gpus, config):
        replicas = config.replicas_of(device.resource)
        name = config.name_of(device.resource)
        for number in range(replicas):
            own = device.id if replicas == 1 else replica_id(device.id, number)
            copy = msgspec.structs.replace(device, id=own, resource=name, replicas=replicas)
            found.setdefault(name, []).append(copy)
    return Inventory({name: tuple(devices) for name, devices in sorted(found.items())})


def single_problem(profiles: Sequence[Sequence[str] | None]) -> Problem | None:
    """Why the strategy `single` cannot be applied. `profiles`: those of each GPU; None: the GPU is not in MIG mode."""
    cut = [one for one in profiles if one is not None]
    if not cut:
        return None
    if len(cut) < len(profiles):
        what = "all devices on the node must be configured with the same migEnabled value"
        return Problem(what, "mig-and-full-gpus")
    if not all(cut):
        what = "at least one device with migEnabled=true was not configured correctly: no MIG devices present"
        return Problem(what, "mig-gpu-without-instances")
    if len({profile for one in cut for profile in one}) > 1:
        return Problem("all MIG devices on the node must be of the same type", "more-than-one-profile")
    return None


def _problem(gpus: Sequence[Gpu], config: PluginConfig) -> Problem | None:
    if config.sharing == "mps" and any(gpu.is_mig for gpu in gpus):
        return Problem("sharing.mps is not supported for MIG devices", "mps-with-mig")
    match config.mig_strategy:
        case "single":
            return single_problem([[cut.profile.name for cut in gpu.cuts] if gpu.is_mig else None for gpu in gpus])
        case "mixed":
            profiles = (cut.profile.name for gpu in gpus for cut in gpu.cuts)
            partial = next((name for name in profiles if _PART_OF_INSTANCE.match(name)), "")
            if partial:
                # The plugin has resources for compute instances that fill their GPU instance only.
                what = f'MIG profile "{partial}" does not match any resource'
                return Problem(what, "no-resource-for-profile")
    return None


def _physical(slots: Sequence[GpuSlot], gpus: Sequence[Gpu], config: PluginConfig) -> Iterator[PhysicalDevice]:
    for slot, gpu in zip(slots, gpus, strict=True):
        if not gpu.is_mig or config.mig_strategy == "none":
            yield PhysicalDevice(slot.uuid, GPU, slot.uuid, slot.index, slot.numa, slot.island, slot.memory_mib)
            continue
        for one in gpu.cuts:
            name = GPU if config.mig_strategy == "single" else one.profile.resource
            yield PhysicalDevice(one.uuid, name, one.uuid, slot.index, slot.numa, slot.island, one.memory_mib, cut=one)
