"""Restores the devices of pods that were admitted before this process started, from the devices in their status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.allocation import HeldDevices

Obj = dict[str, Any]
_LISTS = ("initContainerStatuses", "containerStatuses")


def held_in_status(pod: Obj, by_id: Mapping[str, PhysicalDevice]) -> Iterator[HeldDevices]:
    """Devices that no longer exist (after a change of the MIG layout) are left out."""
    status = pod.get("status") or {}
    for name in _LISTS:
        for container in status.get(name) or ():
            for entry in container.get("allocatedResourcesStatus") or ():
                ids = [one.get("resourceID", "") for one in entry.get("resources") or ()]
                devices = tuple(by_id[one] for one in ids if one in by_id)
                if devices:
                    yield HeldDevices(container["name"], devices[0].resource, devices)
