"""Determines which devices running pods use, from their annotations and status.

Shoal's annotation has the devices' ids by container and resource, or numbers. KAI and HAMi have names (a group of pods
on one device, the device's UUID): what matters is which pods share a device, so names get the lowest numbers of their
node that no pod took by number, in order of mention.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from shoal.devices.device_ids import ids_in
from shoal.engine.device_notation import names
from shoal.engine.device_notation.node_ids import UNKNOWN_IDS, DevicePosition, NodeIds
from shoal.engine.devices.kind import DevicePositions
from shoal.units.annotation_numbers import whole_number
from shoal.units.errors import UserError, Where
from shoal.units.numbers import LONGEST_HELD, MOST_HELD

StringMap = Mapping[str, str]
_BELOW_GROUP = names.DEVICE_GROUP + "/"


def positions_of_pod(annotations: StringMap, where: Where, ids: NodeIds = UNKNOWN_IDS) -> DevicePositions:
    """The devices that a running pod holds by its annotation: `{"main":{"nvidia.com/gpu":["GPU-..."]}}` with the names
    that its node gives them, or `0,1`, or `0:4,1:0` with the first slice of a MIG instance.

    A device is there once for each replica of it, and instances by the names of their profiles.
    """
    text = annotations.get(names.OWN_DEVICES, "")
    here = where.below("metadata.annotations").key(names.OWN_DEVICES)
    if len(text) > LONGEST_HELD:
        raise UserError(f"must be at most {LONGEST_HELD} characters, got {len(text)}", where=here)
    text = text.strip()
    if text.startswith("{"):
        return _positions_of_ids(text, ids)
    if text.count(",") >= MOST_HELD:
        raise UserError(f"must be at most {MOST_HELD} devices", where=here)
    positions = []
    for part in text.split(",") if text else ():
        device, _, start = part.strip().partition(":")
        positions.append((whole_number(device, here, most=1023), whole_number(start, here, most=63) if start else 0))
    return tuple(positions)


def _positions_of_ids(text: str, ids: NodeIds) -> DevicePositions:
    """Devices that do not exist any more (the GPU was divided again) are left out."""
    held = [one for resources in ids_in(text).values() for one in resources.items()]
    if len(held) > 1:
        # What an init container had, the next may have again.
        held = sorted((one, tuple(devices)) for one, devices in _by_resource(held).items())
    positions = [ids.position_of(device) for _, devices in held for device in dict.fromkeys(devices)]
    return tuple([position for position in positions if position is not None])


def _by_resource(held: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for resource, devices in held:
        found.setdefault(resource, []).extend(devices)
    return found


class HeldDevices:
    """Numbers for the devices of all nodes that pods name.

    Where pods come and go, the devices reported for a pod are released with it (`release`): a number is free again with
    its last holder, and a name means nothing more.
    """

    def __init__(self) -> None:
        self._taken: dict[str, Counter[int]] = {}
        """Node -> number -> how many pods hold it."""
        self._number_of: dict[tuple[str, str], int] = {}
        self._users: Counter[tuple[str, str]] = Counter()

    def reserve(self, node: str, positions: Iterable[DevicePosition]) -> None:
        """Record numbers that are given explicitly; call this before the first look-up of a name."""
        self._taken.setdefault(node, Counter()).update({device for device, _ in positions})

    def positions(
        self, node: str, annotations: StringMap, labels: StringMap, ids: NodeIds = UNKNOWN_IDS
    ) -> DevicePositions:
        """The devices that a pod on the node holds by name; none when it names none. `ids` are the node's own names."""
        return self.named(node, device_names(annotations, labels), ids)

    def named(self, node: str, called: Iterable[str], ids: NodeIds = UNKNOWN_IDS) -> DevicePositions:
        """The devices that a pod holds by these names."""
        return tuple(ids.positions[name] if name in ids.positions else (self._number(node, name), 0) for name in called)

    def release(self, node: str, positions: Iterable[DevicePosition], called: Iterable[str] = ()) -> None:
        """A pod holds these no more, which were reserved for it; or had the numbers of these names."""
        for device in {device for device, _ in positions}:
            self._give_back(node, device)
        for name in called:
            number = self._number_of[node, name]
            self._give_back(node, number)
            self._users[node, name] -= 1
            if not self._users[node, name]:
                del self._users[node, name], self._number_of[node, name]

    def __len__(self) -> int:
        """How much is remembered: numbers and names."""
        return sum(map(len, self._taken.values())) + len(self._number_of)

    def _number(self, node: str, name: str) -> int:
        taken = self._taken.setdefault(node, Counter())
        number = self._number_of.get((node, name))
        if number is None:
            number = next(candidate for candidate in range(len(taken) + 1) if candidate not in taken)
            self._number_of[node, name] = number
        taken[number] += 1
        self._users[node, name] += 1
        return number

    def _give_back(self, node: str, device: int) -> None:
        taken = self._taken.get(node)
        if taken is None or device not in taken:
            return
        taken[device] -= 1
        if not taken[device]:
            del taken[device]
        if not taken:
            del self._taken[node]


def devices_fault(annotations: StringMap) -> UserError | None:
    """What is wrong with `shoal.dev/devices`, whatever the node is. Ids are known only to the node."""
    if names.OWN_DEVICES not in annotations:
        return None
    try:
        positions_of_pod(annotations, Where())
    except UserError as error:
        return error
    return None


def device_names(annotations: StringMap, labels: StringMap) -> tuple[str, ...]:
    """Names of devices on a pod: KAI's groups, else the UUIDs that HAMi gave it."""
    keys = [key for key in labels if key == names.DEVICE_GROUP or key.startswith(_BELOW_GROUP)]
    groups = [labels[key] for key in sorted(keys) if labels[key]]
    if groups:
        return tuple(dict.fromkeys(groups))
    if names.HAMI_ALLOCATED not in annotations:
        return ()
    # Containers end in `;`, devices in `:`, and a device is UUID,type,memory,cores.
    text = annotations[names.HAMI_ALLOCATED]
    if len(text) > LONGEST_HELD:
        return ()
    given = text.replace(";", ":").split(":")
    return tuple(dict.fromkeys(device.split(",")[0] for device in given if "," in device))
