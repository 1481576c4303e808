"""Converts the GPUs that a driver reports to the values from which devices, labels and annotations are computed.

Guarantees: GPUs of one island are connected by NVLink, directly or through others; islands are numbered by their first
GPU. MIG instances without a known position are left out, because no configuration can name them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shoal.data.gpus import find_model
from shoal.data.mig import Engines, Layout, Profile, layout_of_product
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu
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
    found = [_cut(gpu.index, one, facts) for one in gpu.instances]
    return sorted((cut for cut in found if cut is not None), key=lambda cut: cut.start)


def _cut(gpu: int, one: MigInstance, facts: Layout | None) -> Cut | None:
    if one.start is None or one.width is None:
        return None
    profile = facts.profile(one.profile) if facts is not None else None
    return Cut(
        gpu=gpu,
        profile=profile or _unknown_profile(one.profile, one.start, one.width),
        start=one.start,
        instance=one.instance if one.instance is not None else 0,
        uuid=one.uuid,
        memory_mib=one.memory_mib or 0,
    )


def _unknown_profile(name: str, start: int, width: int) -> Profile:
    """Of a GPU that the tables do not have yet."""
    slices = _SLICES.match(name)
    compute = int(slices["slices"]) if slices is not None else 0
    return Profile(name, -1, -1, compute, width, (start,), 1, None, None, _UNKNOWN_ENGINES)
