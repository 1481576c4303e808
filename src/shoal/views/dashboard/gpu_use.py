"""Determines which workload uses which part of which GPU, for the tiles, the bar and the sums of the dashboard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.views.dashboard.facts import Fleet, GpuSlot, NodeFacts, PodFacts, Slot, Tile

FREE = ""


def tile_of(node: NodeFacts, pods: Iterable[PodFacts]) -> Tile:
    """The node with these pods on it."""
    parts = _filled(node, pods)
    sums: dict[str, float] = {}
    for gpu in parts:
        for part in gpu:
            if part.owner != FREE:
                sums[part.owner] = sums.get(part.owner, 0.0) + part.width
    return Tile(node, parts, sums)


def fleet_of(tiles: Iterable[Tile]) -> Fleet:
    gpus = broken = 0
    sums: dict[str, float] = {}
    for tile in tiles:
        gpus += tile.node.gpus
        broken += len(tile.node.broken)
        for owner, held in tile.sums.items():
            sums[owner] = sums.get(owner, 0.0) + held
    return Fleet(gpus, broken, sums)


def _filled(node: NodeFacts, pods: Iterable[PodFacts]) -> Sequence[Sequence[GpuSlot]]:
    """For each GPU its parts, in order. Pods whose devices are unknown take the first free GPUs."""
    slots = node.slots or tuple(Slot(f"#{index}", index, 0.0, 1.0) for index in range(node.gpus))
    devices = {slot.device for slot in slots}
    owners: dict[str, str] = {}
    homeless: list[str] = []
    for pod in pods:
        known = [device for device in pod.devices if device in devices]
        owners.update(dict.fromkeys(known, pod.namespace))
        # A request above the capacity is cut to the capacity.
        homeless += [pod.namespace] * min(len(slots) - len(homeless), max(0, round(pod.gpus) - len(known)))
    rest = iter(homeless)
    parts: list[list[GpuSlot]] = [[] for _ in range(node.gpus)]
    for slot in sorted(slots, key=lambda slot: (slot.gpu, slot.start)):
        owner = owners.get(slot.device)
        if owner is None:
            owner = next(rest, FREE)
        if slot.gpu < node.gpus:
            parts[slot.gpu].append(GpuSlot(slot.start, slot.width, owner))
    return parts
