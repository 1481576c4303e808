"""Which devices running pods hold, as far as somebody wrote it on them.

Shoal's annotation has numbers. KAI and HAMi have names (a group of pods on one device, the device's UUID): what matters
is who shares with whom, so names get the lowest numbers of their node that no pod took by number, in order of mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.engine.devices.kind import Spots
from shoal.engine.spelling import names
from shoal.engine.spelling.numbers import whole_number
from shoal.units.errors import Where

Words = Mapping[str, str]


def spots_of_pod(annotations: Words, where: Where) -> Spots:
    """The devices that a running pod is said to hold: `0,1`, or `0:4,1:0` with the first slice of a MIG instance."""
    text = annotations.get(names.OWN_DEVICES, "").strip()
    here = where.below("metadata.annotations").key(names.OWN_DEVICES)
    spots = []
    for part in text.split(",") if text else ():
        device, _, start = part.strip().partition(":")
        spots.append((whole_number(device, here, most=1023), whole_number(start, here, most=63) if start else 0))
    return tuple(spots)


class HeldDevices:
    """Numbers for the devices of all nodes that pods name."""

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}
        self._number_of: dict[tuple[str, str], int] = {}

    def reserve(self, node: str, spots: Iterable[tuple[int, int]]) -> None:
        """Numbers that were said outright; to be told before the first name is asked for."""
        self._taken.setdefault(node, set()).update(device for device, _ in spots)

    def spots(self, node: str, annotations: Words, labels: Words) -> Spots:
        """The devices that a pod on the node holds by name; none when it names none."""
        return tuple((self._number(node, name), 0) for name in device_names(annotations, labels))

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
