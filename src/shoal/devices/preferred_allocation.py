"""Chooses devices for a container by the device plugin's preference.

Whole GPUs: those with the best connection, as `docs/devices.md` describes for the engine: within one NVLink island if
one suffices, the sufficient one with the fewest free GPUs, and inside it the same for NUMA nodes; else within one NUMA
node. Replicas and MIG instances: one by one, from the device with the fewest allocations (or the most, if packed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from shoal.devices.advertised_devices import PhysicalDevice


def choose(
    free: Sequence[PhysicalDevice],
    kept: Sequence[PhysicalDevice],
    all_devices: Sequence[PhysicalDevice],
    count: int,
    *,
    packed: bool,
) -> list[PhysicalDevice]:
    """`count` devices: `kept` (from init containers) and the best further ones of `free`."""
    missing = count - len(kept)
    if missing <= 0:
        return sorted(kept, key=lambda device: (device.gpu, device.id))[:count]
    is_whole = all(device.cut is None and device.replicas == 1 for device in free)
    more = closest(free, missing, kept) if is_whole else _spread(free, all_devices, missing, packed=packed)
    return [*kept, *more]


def closest(free: Sequence[PhysicalDevice], count: int, kept: Sequence[PhysicalDevice] = ()) -> list[PhysicalDevice]:
    islands = {device.island for device in kept}
    near = [device for device in free if device.island in islands]
    if len(near) >= count:
        return _tightest(near, count, _numa)
    if _largest(free, _island) < count <= _largest(free, _numa):
        return _tightest(free, count, _numa, inner=_island)
    return _tightest(free, count, _island, inner=_numa)


def _largest(free: Sequence[PhysicalDevice], key: Callable[[PhysicalDevice], int]) -> int:
    return max(Counter(map(key, free)).values(), default=0)


def _island(device: PhysicalDevice) -> int:
    return device.island


def _numa(device: PhysicalDevice) -> int:
    return device.numa


def _tightest(
    free: Sequence[PhysicalDevice],
    count: int,
    key: Callable[[PhysicalDevice], int],
    inner: Callable[[PhysicalDevice], int] | None = None,
) -> list[PhysicalDevice]:
    """Devices of the smallest sufficient group, else of as few of the largest groups as possible."""
    groups: dict[int, list[PhysicalDevice]] = {}
    for device in sorted(free, key=lambda one: (one.gpu, one.id)):
        groups.setdefault(key(device), []).append(device)
    chosen: list[PhysicalDevice] = []
    while len(chosen) < count and groups:
        missing = count - len(chosen)
        holding = [name for name, group in groups.items() if len(group) >= missing]
        name = min(holding, key=lambda one: len(groups[one])) if holding else max(groups, key=lambda g: len(groups[g]))
        group = groups.pop(name)
        taken = min(missing, len(group))
        chosen += group[:taken] if inner is None else _tightest(group, taken, inner)
    return chosen


def _spread(
    free: Sequence[PhysicalDevice], all_devices: Sequence[PhysicalDevice], count: int, *, packed: bool
) -> list[PhysicalDevice]:
    total = Counter(device.physical for device in all_devices)
    left = Counter(device.physical for device in free)
    given = Counter({name: total[name] - left[name] for name in total})
    picked: Counter[str] = Counter()
    candidates = list(free)
    chosen: list[PhysicalDevice] = []
    for _ in range(min(count, len(candidates))):
        sign = -1 if packed else 1
        best = min(candidates, key=lambda one: (sign * given[one.physical], picked[one.physical]))
        candidates.remove(best)
        given[best.physical] += 1
        picked[best.physical] += 1
        chosen.append(best)
    return chosen
