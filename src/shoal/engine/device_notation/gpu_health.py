"""Reads from a Node how many of its GPUs are unhealthy: a device plugin advertises those in the capacity and not in the
allocatable amount. The XID of a simulated GPU is in an annotation.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.api.node import Node
from shoal.engine.device_notation import names

GPU_FAULTS = "shoal.dev/gpu-faults"


class GpuHealth(msgspec.Struct, frozen=True):
    """Of a node with unhealthy GPUs."""

    unhealthy: int
    """GPUs, or, of a node that advertises MIG instances only, such instances."""
    total: int
    unit: str
    """`GPU` or `MIG instance`."""
    gpus: int
    """How many GPUs it would advertise as whole ones if all were healthy."""
    instances: Mapping[str, int]
    """MIG instances by resource, if all were healthy."""
    xids: Mapping[int, int]
    """By the index of the GPU, where that is known."""
    is_simulated: bool = False


def gpu_health(node: Node) -> GpuHealth | None:
    """None where no GPU is known to be unhealthy. A node whose labels name GPUs and that advertises none has a total of
    zero."""
    allocatable = node.allocatable()
    # A hand-written node may state no capacity: then what it allocates is all that it has.
    capacity = {**allocatable, **node.status.capacity}
    xids = _xids(node.metadata.annotations.get(GPU_FAULTS, ""))
    missing = {
        name: (amount.value(), amount.value() - (allocatable[name].value() if name in allocatable else 0))
        for name, amount in capacity.items()
        if name == names.GPU or name.startswith(names.MIG_PREFIX)
    }
    whole, lost = missing.pop(names.GPU, (0, 0))
    instances = {name: total for name, (total, _) in missing.items()}
    lost_instances = sum(short for _, short in missing.values())
    labels = node.metadata.labels
    if not (whole or instances or names.GPU_SHARED in capacity or xids) and labels.get(names.PRODUCT):
        return GpuHealth(0, 0, "GPU", 0, {}, {})
    if lost <= 0 and lost_instances <= 0 and not xids:
        return None
    if whole:
        unhealthy, total, unit = max(lost, len(xids)), whole, "GPU"
    elif xids:
        said = labels.get(names.COUNT, "")
        unhealthy, total, unit = len(xids), int(said) if said.isdecimal() and len(said) < 5 else len(xids), "GPU"
    else:
        unhealthy, total, unit = lost_instances, sum(instances.values()), "MIG instance"
    return GpuHealth(unhealthy, total, unit, whole, instances, xids, bool(xids))


def _xids(text: str) -> dict[int, int]:
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, int])
    except msgspec.MsgspecError:
        return {}
    return {int(index): xid for index, xid in sorted(found.items()) if index.isdecimal() and len(index) < 5}
