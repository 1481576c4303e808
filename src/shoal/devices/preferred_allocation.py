"""Chooses devices for a container by the device plugin's preference.

Whole GPUs: those with the best connections (`gpu_groups`). Replicas and MIG instances: one by one, from the device with
the fewest allocations (or the most, if packed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.device_ids import number_of_replica
from shoal.devices.gpu_groups import Scores, best_group


def choose(
    free: Sequence[PhysicalDevice],
    kept: Sequence[PhysicalDevice],
    all_devices: Sequence[PhysicalDevice],
    count: int,
    *,
    packed: bool,
    scores: Scores,
) -> list[PhysicalDevice]:
    """`count` devices: `kept` (from init containers) and the best further ones of `free`."""
    if count <= len(kept):
        return sorted(kept, key=lambda device: (device.gpu, device.id))[:count]
    return preferred([*kept, *free], kept, all_devices, count, packed=packed, scores=scores)


def preferred(
    available: Sequence[PhysicalDevice],
    required: Sequence[PhysicalDevice],
    all_devices: Sequence[PhysicalDevice],
    count: int,
    *,
    packed: bool,
    scores: Scores,
) -> list[PhysicalDevice]:
    """`count` of the available devices, the required ones included; empty if there are not so many.

    `all_devices`: those of the resource. `scores`: of the connections between the GPUs of the node.
    """
    if all(device.cut is None and not number_of_replica(device.id) for device in all_devices):
        by_id = {device.id: device for device in sorted(available, key=lambda device: (device.gpu, device.id))}
        return [by_id[one] for one in best_group([*by_id], [device.id for device in required], count, scores)]
    needed = {device.id for device in required}
    candidates = [device for device in available if device.id not in needed]
    missing = count - len(required)
    if missing > len(candidates):
        return []
    return [*required, *_spread(candidates, all_devices, missing, packed=packed)]


def _spread(
    candidates: Sequence[PhysicalDevice], all_devices: Sequence[PhysicalDevice], count: int, *, packed: bool
) -> list[PhysicalDevice]:
    total = Counter(device.physical for device in all_devices)
    left = Counter(device.physical for device in candidates)
    given = Counter({name: total[name] - left[name] for name in total})
    picked: Counter[str] = Counter()
    waiting = list(candidates)
    chosen: list[PhysicalDevice] = []
    for _ in range(count):
        sign = -1 if packed else 1
        best = min(waiting, key=lambda one: (sign * given[one.physical], picked[one.physical]))
        waiting.remove(best)
        given[best.physical] += 1
        picked[best.physical] += 1
        chosen.append(best)
    return chosen
