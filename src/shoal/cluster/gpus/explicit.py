"""Devices that somebody chose for a pod, in its annotation `shoal.dev/devices`.

Either by container, resource and id, as a scheduler writes it that knows the node's devices:
`{"main":{"nvidia.com/gpu":["GPU-..."]}}`; or as the engine reads it of running pods: `0,1` are the GPUs by number and
`0:4,1:0` MIG instances by GPU and first memory slice, dealt out to the containers in order. What cannot be read as
either chooses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.cluster.gpus.devices import Device

ANNOTATION = "shoal.dev/devices"
Obj = dict[str, Any]
Ids = Mapping[str, Mapping[str, tuple[str, ...]]]
_Spot = tuple[int, int | None]


class Choice:
    """What the annotation of one pod says."""

    def __init__(self, pod: Obj) -> None:
        text = str((pod["metadata"].get("annotations") or {}).get(ANNOTATION) or "").strip()
        self._ids = _ids(text)
        self._spots = [] if self._ids else _spots(text)

    def wanted(self, container: str, resource: str, count: int, free: Sequence[Device]) -> list[Device] | str | None:
        """The devices chosen, or the one that is not free; None where nothing is chosen."""
        named = self._ids.get(container, {}).get(resource)
        if named is not None:
            by_id = {device.id: device for device in free}
            missing = [one for one in named if one not in by_id]
            return missing[0] if missing else [by_id[one] for one in dict.fromkeys(named)]
        if not self._spots:
            return None
        left = list(free)
        chosen: list[Device] = []
        for spot in self._spots[:count]:
            found = next((device for device in left if _is_at(device, spot)), None)
            if found is None:
                return str(spot[0]) if spot[1] is None else f"{spot[0]}:{spot[1]}"
            left.remove(found)
            chosen.append(found)
        del self._spots[:count]
        return chosen


def _is_at(device: Device, spot: _Spot) -> bool:
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
    for part in text.split(",") if text else ():
        gpu, colon, start = part.strip().partition(":")
        if not gpu.isdecimal() or (colon and not start.isdecimal()):
            return []
        found.append((int(gpu), int(start) if colon else None))
    return found
