"""Devices that were chosen for a pod, in its annotation `shoal.dev/devices`.

Either by container, resource and id, as a scheduler writes it that knows the node's devices:
`{"main":{"nvidia.com/gpu":["GPU-..."]}}`; or as the engine reads it of running pods: `0,1` are the GPUs by number and
`0:4,1:0` MIG instances by GPU and first memory slice, dealt out to the containers in order. By number a device may be
named among ids too: a scheduler that wants an instance to be cut knows no id of it. What cannot be read, or is longer
than the devices of any node, chooses nothing.

Whole GPUs are preferred, not demanded: one that another pod holds is replaced by a free one (`allocation`). The status
of the pod says which devices it got. A MIG instance, or a replica, that another pod holds is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.embedded.gpus.devices import PhysicalDevice
from shoal.units.numbers import LONGEST_HELD, MOST_HELD, whole_of

ANNOTATION = "shoal.dev/devices"
Obj = dict[str, Any]
Ids = Mapping[str, Mapping[str, tuple[str, ...]]]
_Spot = tuple[int, int | None]


class Choice:
    """What the annotation of one pod says."""

    def __init__(self, pod: Obj) -> None:
        text = str((pod["metadata"].get("annotations") or {}).get(ANNOTATION) or "")
        text = "" if len(text) > LONGEST_HELD else text.strip()
        self._ids = _ids(text)
        self._spots = [] if self._ids else _spots(text)

    def wanted(
        self, container: str, resource: str, count: int, free: Sequence[PhysicalDevice]
    ) -> list[PhysicalDevice] | str | None:
        """The devices chosen, or the one that is not free; None where nothing is chosen."""
        named = self._ids.get(container, {}).get(resource)
        if named is not None:
            found = {one: _named(one, free) for one in named}
            missing = [one for one, device in found.items() if device is None]
            return missing[0] if missing else [device for device in found.values() if device is not None]
        if not self._spots:
            return None
        left = list(free)
        chosen: list[PhysicalDevice] = []
        for spot in self._spots[:count]:
            device = next((device for device in left if _is_at(device, spot)), None)
            if device is None:
                return str(spot[0]) if spot[1] is None else f"{spot[0]}:{spot[1]}"
            left.remove(device)
            chosen.append(device)
        del self._spots[:count]
        return chosen


def _named(one: str, free: Sequence[PhysicalDevice]) -> PhysicalDevice | None:
    by_id = next((device for device in free if device.id == one), None)
    spots = _spots(one) if by_id is None else []
    return next((device for device in free if _is_at(device, spots[0])), None) if len(spots) == 1 else by_id


def _is_at(device: PhysicalDevice, spot: _Spot) -> bool:
    gpu, start = spot
    return device.gpu == gpu and (start is None or (device.cut is not None and device.cut.start == start))


def _ids(text: str) -> Ids:
    if not text.startswith("{"):
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, dict[str, tuple[str, ...]]])
    except msgspec.DecodeError:
        return {}


def _spots(text: str) -> list[_Spot]:
    found: list[_Spot] = []
    if text.count(",") >= MOST_HELD:
        return found
    for part in text.split(",") if text else ():
        gpu, colon, start = part.strip().partition(":")
        number, begin = whole_of(gpu), whole_of(start)
        if number is None or (colon and begin is None):
            return []
        found.append((number, begin))
    return found
