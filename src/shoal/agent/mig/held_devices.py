"""Determines which GPUs and MIG instances the pods of a node hold, from their objects.

A pod whose devices are not known, because neither its scheduler nor the kubelet reports them, is taken to hold every
device of the resources that it requests: an instance of a running pod must not be destroyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.devices.device_ids import device_of_replica, ids_in
from shoal.devices.names import GPU, MIG_PREFIX, OWN_DEVICES, SHARED_SUFFIX

Obj = Mapping[str, Any]


class DevicesInUse(msgspec.Struct, frozen=True):
    ids: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    """All devices of these are held; without the suffix of shared ones."""


NOTHING_IN_USE = DevicesInUse()


def held_devices(pods: Iterable[Obj]) -> DevicesInUse:
    """`pods`: those of the node."""
    ids: set[str] = set()
    resources: set[str] = set()
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
            continue
        requested = {name for name in _requested(pod) if _plain(name) == GPU or name.startswith(MIG_PREFIX)}
        if not requested:
            continue
        known = dict(_reported(pod))
        ids.update(device_of_replica(one) for each in known.values() for one in each)
        resources |= {_plain(name) for name in requested - known.keys()}
    return DevicesInUse(frozenset(ids), frozenset(resources))


def _plain(resource: str) -> str:
    return resource.removesuffix(SHARED_SUFFIX)


def _reported(pod: Obj) -> Iterator[tuple[str, list[str]]]:
    """The ids of each resource; those of the kubelet come last, because they count."""
    found: dict[str, list[str]] = {}
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    for chosen in ids_in(annotations.get(OWN_DEVICES, "")).values():
        for resource, ids in chosen.items():
            # An instance that was still to be created is named by its place, not by its id.
            if all(one.startswith(("MIG-", "GPU-")) for one in ids):
                found.setdefault(resource, []).extend(ids)
    status = pod.get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(kind) or ():
            for entry in container.get("allocatedResourcesStatus") or ():
                reported = [one["resourceID"] for one in entry.get("resources") or ()]
                found.setdefault(entry["name"], []).extend(reported)
    yield from found.items()


def _requested(pod: Obj) -> Iterator[str]:
    spec = pod.get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        yield from (resources.get("limits") or {}) | (resources.get("requests") or {})
