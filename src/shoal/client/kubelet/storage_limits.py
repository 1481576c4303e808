"""Decides whether a pod uses more of the disk than its limits of ephemeral storage allow, with the kubelet's messages.

The order is the kubelet's: the size of each emptyDir, the sum of the containers' limits, the limit of each container.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from shoal.units.quantity import NANO, Quantity

Obj = dict[str, Any]
RESOURCE, EVICTED = "ephemeral-storage", "Evicted"
_CRITICAL_PRIORITY = 2_000_000_000
"""The kubelet evicts no pod of this priority."""
_NONE = Quantity.of(0)


class StorageUse(msgspec.Struct, frozen=True):
    """Bytes on the disk."""

    containers: Mapping[str, int] = {}
    """Logs, and what containers have written beside their volumes."""
    empty_dirs: Mapping[str, int] = {}
    others: int = 0
    """What belongs to the pod and to none of its containers."""


def has_storage_limits(pod: Obj) -> bool:
    """Whether the use of this pod has to be measured."""
    spec = pod["spec"]
    if int(spec.get("priority") or 0) >= _CRITICAL_PRIORITY:
        return False
    return any(True for _ in _sized(spec)) or any(_limit(one) for one in (*_inits(spec), *spec["containers"]))


def storage_excess(pod: Obj, used: StorageUse) -> str:
    """The message of the eviction; empty if the pod is within its limits."""
    return next(_excess(pod["spec"], used), "")


def _excess(spec: Obj, used: StorageUse) -> Iterator[str]:
    for name, size in _sized(spec):
        if used.empty_dirs.get(name, 0) * NANO > size.nano:
            yield f'Usage of EmptyDir volume "{name}" exceeds the limit "{size}". '
    total = _pod_limit(spec)
    if total is not None and _total(spec, used) * NANO > total.nano:
        yield f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
    for container in spec["containers"]:
        limit, own = _limit(container), used.containers.get(container["name"], 0)
        if limit and own * NANO > limit.nano:
            yield f'Container {container["name"]} exceeded its local ephemeral storage limit "{limit}". '


def _sized(spec: Obj) -> Iterator[tuple[str, Quantity]]:
    for volume in spec.get("volumes") or ():
        text = (volume.get("emptyDir") or {}).get("sizeLimit")
        size = _NONE if text is None else Quantity.parse(str(text))
        if size > _NONE:
            yield volume["name"], size


def _total(spec: Obj, used: StorageUse) -> int:
    """Without volumes in memory."""
    memory = {one["name"] for one in spec.get("volumes") or () if (one.get("emptyDir") or {}).get("medium") == "Memory"}
    volumes = sum(size for name, size in used.empty_dirs.items() if name not in memory)
    return sum(used.containers.values()) + volumes + used.others


def _pod_limit(spec: Obj) -> Quantity | None:
    """As Kubernetes computes the limits of a pod: containers that run together are added, and those without a limit
    count as zero. None if no container has a limit."""
    limits = [one for one in (_limit(each) for each in spec["containers"]) if one is not None]
    beside, inits = _NONE, list[Quantity]()
    for container in _inits(spec):
        limit = _limit(container)
        if limit is not None and container.get("restartPolicy") == "Always":
            limits.append(limit)
            beside = beside + limit
            inits.append(beside)
        elif limit is not None:
            inits.append(limit + beside)
    if not limits and not inits:
        return None
    total = max((sum(limits, _NONE), *inits), key=lambda one: one.nano)
    overhead = (spec.get("overhead") or {}).get(RESOURCE)
    return total + Quantity.parse(str(overhead)) if overhead is not None and total else total


def _inits(spec: Obj) -> Sequence[Obj]:
    return spec.get("initContainers") or ()


def _limit(container: Obj) -> Quantity | None:
    text = ((container.get("resources") or {}).get("limits") or {}).get(RESOURCE)
    return None if text is None else Quantity.parse(str(text))
