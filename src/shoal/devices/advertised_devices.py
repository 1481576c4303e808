"""Lists the devices that the plugin advertises: whole GPUs, MIG instances, and replicas of either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from shoal.devices.device_ids import replica_id
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu
from shoal.devices.names import GPU
from shoal.devices.plugin_config import PluginConfig


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


class Inventory(msgspec.Struct, frozen=True):
    devices: Mapping[str, tuple[PhysicalDevice, ...]]
    """By resource, in the plugin's order."""
    problem: str = ""
    """Why the plugin did not start; empty if it did."""


def inventory(slots: Sequence[GpuSlot], gpus: Sequence[Gpu], config: PluginConfig) -> Inventory:
    if config.sharing == "mps" and any(gpu.is_mig for gpu in gpus):
        return Inventory({}, "sharing.mps is not supported for MIG devices")
    problem = single_problem(gpus) if config.mig_strategy == "single" else ""
    if problem:
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


def single_problem(gpus: Sequence[Gpu]) -> str:
    """Why the strategy `single` cannot be applied; empty if it can."""
    if not any(gpu.is_mig for gpu in gpus):
        return ""
    if not all(gpu.is_mig for gpu in gpus):
        return "all devices on the node must be configured with the same migEnabled value"
    if not all(gpu.cuts for gpu in gpus):
        return "at least one device with migEnabled=true was not configured correctly: no MIG devices present"
    if len({cut.profile.name for gpu in gpus for cut in gpu.cuts}) > 1:
        return "all MIG devices on the node must be of the same type"
    return ""


def _physical(slots: Sequence[GpuSlot], gpus: Sequence[Gpu], config: PluginConfig) -> Iterator[PhysicalDevice]:
    for slot, gpu in zip(slots, gpus, strict=True):
        if not gpu.is_mig or config.mig_strategy == "none":
            yield PhysicalDevice(slot.uuid, GPU, slot.uuid, slot.index, slot.numa, slot.island, slot.memory_mib)
            continue
        for one in gpu.cuts:
            name = GPU if config.mig_strategy == "single" else one.profile.resource
            yield PhysicalDevice(one.uuid, name, one.uuid, slot.index, slot.numa, slot.island, one.memory_mib, cut=one)
