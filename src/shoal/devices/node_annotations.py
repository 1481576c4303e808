"""Computes Shoal's annotations about a node's devices, so that the engine uses the same devices as the kubelet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Gpu
from shoal.devices.names import GPU, OWN_ISLANDS, OWN_NUMA, OWN_ONE_PER_REQUEST, OWN_TOPOLOGY
from shoal.devices.plugin_config import PluginConfig


class AnnotatedNode(msgspec.Struct, frozen=True):
    slots: tuple[GpuSlot, ...]
    gpus: tuple[Gpu, ...]
    """The MIG layout of each."""
    config: PluginConfig


def own_words(
    scene: AnnotatedNode, devices: Mapping[str, Sequence[PhysicalDevice]], unhealthy: AbstractSet[int] = frozenset()
) -> dict[str, str]:
    """`unhealthy`: the indexes of GPUs that the plugin does not advertise at present."""
    if not scene.slots:
        return {}
    numbers, places = _numbered(scene)
    found = {OWN_TOPOLOGY: _topology(scene, devices, unhealthy)}
    # The engine numbers the advertised whole GPUs; MIG instances are counted by name.
    if numbers:
        found[OWN_ISLANDS] = _groups([slot.island for slot in places], numbers)
        found[OWN_NUMA] = _groups([slot.numa for slot in places], numbers)
    if scene.config.replicas_of(GPU) > 1:
        found[OWN_ONE_PER_REQUEST] = "true" if scene.config.one_per_request else "false"
    return found


def _numbered(scene: AnnotatedNode) -> tuple[list[int], list[GpuSlot]]:
    """For each `nvidia.com/gpu` before replication: its number, and its GPU."""
    places: list[GpuSlot] = []
    for slot, gpu in zip(scene.slots, scene.gpus, strict=True):
        if not gpu.is_mig or scene.config.mig_strategy == "none":
            places.append(slot)
        elif scene.config.mig_strategy == "single":
            places += [slot] * len(gpu.cuts)
    return list(range(len(places))), places


def _groups(group_of: Sequence[int], numbers: Iterable[int]) -> str:
    """`0-3,4-7`; ranges of one group that are not consecutive are joined by a plus sign."""
    groups: dict[int, list[int]] = {}
    for number, group in zip(numbers, group_of, strict=True):
        groups.setdefault(group, []).append(number)
    return ",".join("+".join(_spans(members)) for _, members in sorted(groups.items()))


def _spans(numbers: Sequence[int]) -> Iterable[str]:
    start = last = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == last + 1:
            last = number
            continue
        yield str(start) if start == last else f"{start}-{last}"
        start = last = number


def _topology(
    scene: AnnotatedNode, devices: Mapping[str, Sequence[PhysicalDevice]], unhealthy: AbstractSet[int]
) -> str:
    gpus = []
    for slot, gpu in zip(scene.slots, scene.gpus, strict=True):
        row: dict[str, object] = {
            "index": slot.index,
            "uuid": slot.uuid,
            "pci": slot.pci,
            "numa": slot.numa,
            "island": slot.island,
            "memoryMiB": slot.memory_mib,
        }
        if slot.index in unhealthy:
            row["unhealthy"] = True
        if gpu.is_mig:
            row["mig"] = [{"profile": c.profile.name, "start": c.start, "uuid": c.uuid} for c in gpu.cuts]
        gpus.append(row)
    # Ids of replicas consist of the device's id and a number; listing a thousand of them would be too long.
    replicas = {name: found[0].replicas for name, found in devices.items() if found and found[0].replicas > 1}
    return msgspec.json.encode({"gpus": gpus, **({"replicas": replicas} if replicas else {})}).decode()
