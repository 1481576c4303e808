"""Chooses devices for a container by the device plugin's preference.

Whole GPUs: those with the best connection, which the engine chooses too (`closeness`). Replicas and MIG instances: one
by one, from the device with the fewest allocations (or the most, if packed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.closeness import closest


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
    more = _closest(free, missing, kept) if is_whole else _spread(free, all_devices, missing, packed=packed)
    return [*kept, *more]


def _closest(free: Sequence[PhysicalDevice], count: int, kept: Sequence[PhysicalDevice]) -> list[PhysicalDevice]:
    islands = {device.island for device in kept}
    near = [device for device in free if device.island in islands]
    usable = sorted(near if len(near) >= count else free, key=lambda device: (device.gpu, device.id))
    levels = ([device.island for device in usable], [device.numa for device in usable])
    return [usable[position] for position in closest(range(len(usable)), count, levels)]


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
