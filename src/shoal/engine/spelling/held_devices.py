"""Which devices running pods hold, as far as somebody wrote it on them.

Shoal's annotation has the devices' ids by container and resource, or numbers. KAI and HAMi have names (a group of pods
on one device, the device's UUID): what matters is who shares with whom, so names get the lowest numbers of their node
that no pod took by number, in order of mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.engine.devices.kind import Spots
from shoal.engine.spelling import names
from shoal.engine.spelling.node_ids import UNKNOWN_IDS, NodeIds, ids_in
from shoal.engine.spelling.numbers import whole_number
from shoal.units.errors import Where

Words = Mapping[str, str]


def spots_of_pod(annotations: Words, where: Where, ids: NodeIds = UNKNOWN_IDS) -> Spots:
    """The devices that a running pod is said to hold: `{"main":{"nvidia.com/gpu":["GPU-..."]}}` with the names that its
    node gives them, or `0,1`, or `0:4,1:0` with the first slice of a MIG instance.

    A device is there once for each replica of it, and instances by the names of their profiles.
    """
    text = annotations.get(names.OWN_DEVICES, "").strip()
    if text.startswith("{"):
        return _spots_of_ids(text, ids)
    here = where.below("metadata.annotations").key(names.OWN_DEVICES)
    spots = []
    for part in text.split(",") if text else ():
        device, _, start = part.strip().partition(":")
        spots.append((whole_number(device, here, most=1023), whole_number(start, here, most=63) if start else 0))
    return tuple(spots)


def _spots_of_ids(text: str, ids: NodeIds) -> Spots:
    """What nobody knows any more (the GPU was cut anew since) is left out."""
    by_resource: dict[str, dict[str, None]] = {}
    for resources in ids_in(text).values():
        for resource, devices in resources.items():
            # What an init container had, the next may have again.
            by_resource.setdefault(resource, {}).update(dict.fromkeys(devices))
    named = [device for _, devices in sorted(by_resource.items()) for device in devices]
    return tuple(spot for device in named if (spot := ids.spot_of(device)) is not None)


class HeldDevices:
    """Numbers for the devices of all nodes that pods name."""

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}
        self._number_of: dict[tuple[str, str], int] = {}

    def reserve(self, node: str, spots: Iterable[tuple[int, int]]) -> None:
        """Numbers that were said outright; to be told before the first name is asked for."""
        self._taken.setdefault(node, set()).update(device for device, _ in spots)

    def spots(self, node: str, annotations: Words, labels: Words, ids: NodeIds = UNKNOWN_IDS) -> Spots:
        """The devices that a pod on the node holds by name; none when it names none. `ids` are the node's own names."""
        return tuple(
            ids.spots[name] if name in ids.spots else (self._number(node, name), 0)
            for name in device_names(annotations, labels)
        )

    def _number(self, node: str, name: str) -> int:
        number = self._number_of.get((node, name))
        if number is None:
            taken = self._taken.setdefault(node, set())
            number = next(candidate for candidate in range(len(taken) + 1) if candidate not in taken)
            taken.add(number)
            self._number_of[node, name] = number
        return number


def device_names(annotations: Words, labels: Words) -> tuple[str, ...]:
    """Names of devices on a pod: KAI's groups, else the UUIDs that HAMi gave it."""
    groups = [
        value
        for key, value in sorted(labels.items())
        if (key == names.DEVICE_GROUP or key.startswith(names.DEVICE_GROUP + "/")) and value
    ]
    if groups:
        return tuple(dict.fromkeys(groups))
    # Containers end in `;`, devices in `:`, and a device is UUID,type,memory,cores.
    given = annotations.get(names.HAMI_ALLOCATED, "").replace(";", ":").split(":")
    return tuple(dict.fromkeys(device.split(",")[0] for device in given if "," in device))
