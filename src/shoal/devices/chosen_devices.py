"""Parses the devices that were chosen for a pod, from its annotation `shoal.dev/devices`.

The annotation has one of two forms. By container, resource and id, from a scheduler that knows the node's devices:
`{"main":{"nvidia.com/gpu":["GPU-..."]}}`; or the form that the engine reads on running pods: `0,1` for GPUs by number,
and `0:4,1:0` for MIG instances by GPU and first memory slice, assigned to the containers in order. Ids may include such
numbers too, because an instance that is still to be created has no id. An invalid or too long value chooses nothing.

Whole GPUs are preferred, not required: one that another pod holds is replaced by a free one (`allocation`). The status
of the pod has the allocated devices. If another pod holds a chosen MIG instance or replica, the pod is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.device_ids import ids_in
from shoal.devices.names import OWN_DEVICES
from shoal.units.numbers import LONGEST_HELD, MOST_HELD, whole_of

Obj = dict[str, Any]
_Position = tuple[int, int | None]


class Choice:
    """The chosen devices of one pod."""

    def __init__(self, pod: Obj) -> None:
        text = str((pod["metadata"].get("annotations") or {}).get(OWN_DEVICES) or "")
        text = "" if len(text) > LONGEST_HELD else text.strip()
        self._ids = ids_in(text)
        self._positions = [] if self._ids else _positions(text)

    def wanted(
        self, container: str, resource: str, count: int, free: Sequence[PhysicalDevice]
    ) -> list[PhysicalDevice] | str | None:
        """The chosen devices, or the id of one that is not free; None if nothing is chosen."""
        named = self._ids.get(container, {}).get(resource)
        if named is not None:
            found = {one: _named(one, free) for one in named}
            missing = [one for one, device in found.items() if device is None]
            return missing[0] if missing else [device for device in found.values() if device is not None]
        if not self._positions:
            return None
        left = list(free)
        chosen: list[PhysicalDevice] = []
        for position in self._positions[:count]:
            device = next((device for device in left if _is_at(device, position)), None)
            if device is None:
                return str(position[0]) if position[1] is None else f"{position[0]}:{position[1]}"
            left.remove(device)
            chosen.append(device)
        del self._positions[:count]
        return chosen

    def pass_over(self, container: str, resource: str, count: int) -> None:
        """Leave out the devices of a container, as if it had got them."""
        if self._ids.get(container, {}).get(resource) is None:
            del self._positions[:count]


def _named(one: str, free: Sequence[PhysicalDevice]) -> PhysicalDevice | None:
    by_id = next((device for device in free if device.id == one), None)
    spots = _positions(one) if by_id is None else []
    return next((device for device in free if _is_at(device, spots[0])), None) if len(spots) == 1 else by_id


def _is_at(device: PhysicalDevice, position: _Position) -> bool:
    gpu, start = position
    return device.gpu == gpu and (start is None or (device.cut is not None and device.cut.start == start))


def _positions(text: str) -> list[_Position]:
    found: list[_Position] = []
    if text.count(",") >= MOST_HELD:
        return found
    for part in text.split(",") if text else ():
        gpu, colon, start = part.strip().partition(":")
        number, begin = whole_of(gpu), whole_of(start)
        if number is None or (colon and begin is None):
            return []
        found.append((number, begin))
    return found
