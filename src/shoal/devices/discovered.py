"""Converts the GPUs that a driver reports to the values from which devices, labels and annotations are computed.

Guarantees: GPUs of one island are connected by NVLink, directly or through others; islands are numbered by their first
GPU. A driver reports the positions of MIG instances to privileged processes only; others assume positions at which the
instances fit. They are right enough to name the instances: no instance is created or destroyed without the privilege.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from shoal.data.gpus import find_model
from shoal.data.mig import Engines, Layout, Profile, layout_of_product
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu, places
from shoal.devices.mig_profile_names import MigNameError, parse_profile
from shoal.devices.port import GpuList, InstalledGpu, MigInstance
from shoal.devices.product_names import product_of_device

_UNKNOWN_ENGINES = Engines(None, None, None, None, None)
_SLICES = re.compile(r"(?P<slices>[0-9]+)g\.")


def with_lost(before: Mapping[str, InstalledGpu], listed: GpuList) -> dict[str, InstalledGpu]:
    """The GPUs by UUID, also those that were lost, as they were before."""
    present = {gpu.uuid: gpu for gpu in listed.gpus}
    lost = {one.uuid for one in listed.lost}
    return {uuid: gpu for uuid, gpu in {**before, **present}.items() if uuid in present or uuid in lost}


def slots_of(gpus: Sequence[InstalledGpu]) -> tuple[GpuSlot, ...]:
    """A NUMA node that the machine does not report is 0, as the kubelet counts it."""
    islands = _islands(gpus)
    return tuple(_slot(gpu, islands[gpu.uuid]) for gpu in gpus)


def layouts_of(gpus: Sequence[InstalledGpu]) -> tuple[Gpu, ...]:
    """The MIG layout of each GPU."""
    return tuple(Gpu(is_mig=bool(gpu.is_mig), cuts=tuple(_cuts(gpu))) for gpu in gpus)


def _slot(gpu: InstalledGpu, island: int) -> GpuSlot:
    product = product_of_device(gpu.name)
    model = find_model(product)
    return GpuSlot(
        index=gpu.index,
        uuid=gpu.uuid,
        model=model.name if model is not None else "",
        product=product,
        memory_mib=gpu.memory_mib or 0,
        numa=gpu.numa or 0,
        island=island,
        pci=gpu.pci,
        serial=gpu.serial or "",
        compute_capability=gpu.compute_capability or "",
        is_mig_capable=gpu.is_mig is not None,
        pci_id=gpu.pci_id or "",
    )


def _islands(gpus: Sequence[InstalledGpu]) -> dict[str, int]:
    peers: dict[str, set[str]] = {gpu.uuid: {peer.uuid for peer in gpu.peers} for gpu in gpus}
    # A lost GPU still names its peers, which name it no longer.
    for gpu in gpus:
        for peer in gpu.peers:
            if peer.uuid in peers:
                peers[peer.uuid].add(gpu.uuid)
    found: dict[str, int] = {}
    number = -1
    for gpu in gpus:
        if gpu.uuid in found:
            continue
        number += 1
        waiting = [gpu.uuid]
        while waiting:
            uuid = waiting.pop()
            if uuid in found or uuid not in peers:
                continue
            found[uuid] = number
            waiting += peers[uuid]
    return found


def _cuts(gpu: InstalledGpu) -> list[Cut]:
    facts = layout_of_product(product_of_device(gpu.name).removeprefix("NVIDIA-"))
    assumed = _assumed_starts(gpu.instances, facts) if any(one.start is None for one in gpu.instances) else {}
    found = [_cut(gpu.index, one, facts, assumed) for one in gpu.instances]
    return sorted(found, key=lambda cut: cut.start)


def _assumed_starts(instances: Sequence[MigInstance], facts: Layout | None) -> dict[int | None, int]:
    """By number of the GPU instance."""
    profiles = {one.instance: _instance_profile(one.profile) for one in instances}
    numbers = sorted(profiles, key=lambda number: -1 if number is None else number)
    found = None if facts is None else places(facts, tuple(sorted(Counter(profiles.values()).items())))
    if found is None:
        # Of a model that the tables do not have: one after the other.
        widths = (_compute_slices(profiles[number]) or 1 for number in numbers)
        return dict(zip(numbers, accumulate(widths, initial=0), strict=False))
    left: dict[str, list[int]] = {}
    for profile, start in found:
        left.setdefault(profile, []).append(start)
    return {number: left[profiles[number]].pop(0) for number in numbers}


def _instance_profile(name: str) -> str:
    """Of the GPU instance, from the name of one of its parts."""
    try:
        return parse_profile(name).instance
    except MigNameError:
        return name


def _cut(gpu: int, one: MigInstance, facts: Layout | None, assumed: Mapping[int | None, int]) -> Cut:
    start = assumed[one.instance] if assumed or one.start is None else one.start
    profile = facts.profile(one.profile) if facts is not None else None
    return Cut(
        gpu=gpu,
        profile=profile or _unknown_profile(one.profile, start, one.width or _compute_slices(one.profile) or 1),
        start=start,
        instance=one.instance if one.instance is not None else 0,
        uuid=one.uuid,
        memory_mib=one.memory_mib or 0,
    )


def _compute_slices(profile: str) -> int:
    found = _SLICES.match(profile)
    return int(found["slices"]) if found is not None else 0


def _unknown_profile(name: str, start: int, width: int) -> Profile:
    """Of a GPU that the tables do not have yet."""
    return Profile(name, -1, -1, _compute_slices(name), width, (start,), 1, None, None, _UNKNOWN_ENGINES)
