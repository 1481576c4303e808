"""Determines which workload uses which part of which GPU, for the tiles, the bar and the sums of the dashboard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.views.dashboard.facts import DashboardNode, DashboardPod, Fleet, GpuSlot, Slot, Tile

FREE = ""


def tile_of(node: DashboardNode, pods: Iterable[DashboardPod]) -> Tile:
    """The node with these pods on it."""
    parts = _filled(node, pods)
    sums: dict[str, float] = {}
    for gpu in parts:
        for part in gpu:
            if part.owner != FREE:
                sums[part.owner] = sums.get(part.owner, 0.0) + part.width
    return Tile(node, parts, sums, sum(sums.values()), max(sums, key=lambda owner: sums[owner], default=FREE))


def fleet_of(tiles: Iterable[Tile]) -> Fleet:
    gpus = broken = 0
    sums: dict[str, float] = {}
    most_free, lost = ("", 0), 0.0
    for tile in tiles:
        node = tile.node
        gpus += node.gpus
        broken += len(node.broken)
        lost += sum(_free_part(tile, index) for index in node.broken)
        for owner, held in tile.sums.items():
            sums[owner] = sums.get(owner, 0.0) + held
        # A node with more held than that cannot have more whole free GPUs: counting them is what takes time.
        if node.is_ready and not node.is_cordoned and node.gpus - tile.held > most_free[1]:
            most_free = max(most_free, (node.name, tile.whole_free), key=lambda found: found[1])
    return Fleet(gpus, broken, sums, most_free, lost)


def _free_part(tile: Tile, index: int) -> float:
    """How much of a GPU no pod holds."""
    if index >= len(tile.parts):
        return 0.0
    return 1.0 - sum(part.width for part in tile.parts[index] if part.owner != FREE)


def _filled(node: DashboardNode, pods: Iterable[DashboardPod]) -> Sequence[Sequence[GpuSlot]]:
    """For each GPU its parts, in order. Pods whose devices are unknown take the first free GPUs that work."""
    slots = node.slots or tuple(Slot(f"#{index}", index, 0.0, 1.0) for index in range(node.gpus))
    devices = {slot.device for slot in slots}
    owners: dict[str, DashboardPod] = {}
    homeless: list[DashboardPod] = []
    for pod in pods:
        known = [device for device in pod.devices if device in devices]
        owners.update(dict.fromkeys(known, pod))
        # A request above the capacity is cut to the capacity.
        homeless += [pod] * min(len(slots) - len(homeless), max(0, round(pod.gpus) - len(known)))
    rest = iter(homeless)
    parts: list[list[GpuSlot]] = [[] for _ in range(node.gpus)]
    for slot in sorted(slots, key=lambda slot: (slot.gpu, slot.start)):
        owner = owners.get(slot.device)
        if owner is None and slot.gpu not in node.broken:
            owner = next(rest, None)
        if slot.gpu < node.gpus:
            parts[slot.gpu].append(_part(slot, owner))
    return parts


def _part(slot: Slot, pod: DashboardPod | None) -> GpuSlot:
    if pod is None:
        return GpuSlot(slot.start, slot.width, FREE, device=slot.device)
    return GpuSlot(slot.start, slot.width, pod.namespace, pod.load, pod.full_name, slot.device)
