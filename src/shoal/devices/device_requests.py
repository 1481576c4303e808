"""Lists the device requests of a pod's containers, in the order in which the kubelet admits them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.units.numbers import whole_of

Obj = dict[str, Any]
PREFIX = "nvidia.com/"


class DeviceRequest(msgspec.Struct, frozen=True):
    container: str
    is_passing: bool
    """Whether it is an init container that ends before the others start, so that they can use its devices."""
    amounts: tuple[tuple[str, int], ...]


def asks_of(pod: Obj) -> Iterator[DeviceRequest]:
    spec = pod.get("spec") or {}
    for container in spec.get("initContainers") or ():
        if amounts := _amounts(container):
            yield DeviceRequest(container["name"], container.get("restartPolicy") != "Always", amounts)
    for container in spec.get("containers") or ():
        if amounts := _amounts(container):
            yield DeviceRequest(container["name"], False, amounts)


def _amounts(container: Obj) -> tuple[tuple[str, int], ...]:
    resources = container.get("resources") or {}
    given = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    found = []
    for name, amount in given.items():
        if name.startswith(PREFIX) and (count := whole_of(str(amount))):
            found.append((name, count))
    return tuple(sorted(found))
