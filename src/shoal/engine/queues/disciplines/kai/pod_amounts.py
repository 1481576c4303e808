"""Counts what a pod takes of a queue's resources, and what a cluster has of them to divide.

A part of a GPU that is asked for by memory counts by the smallest GPU of the cluster, wherever the pod is. A MIG
instance counts its compute slices, and a claim on devices of a GPU class as many GPUs as it is for.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import FULL_MILLI, NOMINAL_MEMORY_MIB, MemoryShares, MigTiles, VirtualGpus
from shoal.engine.dra.requests import ClaimAsk, ClaimRef, Option
from shoal.engine.queues.disciplines.kai.fair_queues import Amounts3
from shoal.engine.queues.disciplines.kai.node_pools import NodePool, pool_rows

_COMPUTE = re.compile(r"(?:^|[-.])([1-9][0-9]?)g\b", re.ASCII)
_GPU_CLASSES = ("gpu.nvidia.com", "nvidia.com/gpu")


class PodAmounts:
    """What pods take, by their requests, in one cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Charge, Amounts3] = {}
        self._smallest_mib = _smallest_gpu_mib(cluster)

    def of(self, charge: Charge) -> Amounts3:
        known = self._known.get(charge)
        if known is None:
            ask = charge.ask
            gpu = self._device_milli(ask) + sum(map(self._claimed_milli, ask.claims))
            known = self._known[charge] = (gpu, ask.request("cpu"), ask.request("memory"))
        return known

    def _device_milli(self, ask: Ask) -> int:
        match ask.devices:
            case MigTiles(tiles):
                return sum(compute_slices(profile) * count * FULL_MILLI for profile, count in tiles)
            case MemoryShares(count, mib):
                return count * -(-mib * FULL_MILLI // self._smallest_mib)
            case VirtualGpus(count, mib) if mib:
                return count * -(-mib * FULL_MILLI // self._smallest_mib)
            case _:
                return ask.gpu_milli

    def _claimed_milli(self, ref: ClaimRef) -> int:
        options = gpu_options(self._cluster, ref)
        return sum((option.count or 1) * FULL_MILLI for option in options)


def gpu_options(cluster: Cluster, ref: ClaimRef) -> list[Option]:
    """The first choice of each request of a claim, as far as it is for devices of a GPU class."""
    content: ClaimAsk | None = ref.own
    if ref.shared:
        shared = cluster.dra.shared.find(ref.shared)
        content = shared.facts.ask if shared is not None and shared.facts is not None else None
    requests = content.requests if content is not None else ()
    best = [request.options[0] for request in requests if request.options]
    return [option for option in best if is_gpu_class(option.device_class)]


def is_gpu_class(name: str) -> bool:
    """Whether the devices of a DeviceClass count as GPUs."""
    return name in _GPU_CLASSES or name.endswith("/gpu")


def offered_amounts(cluster: Cluster, rows: NDArray[np.int64]) -> list[int]:
    """What some nodes offer."""
    offered = cluster.total[rows]
    gpus = int(cluster.devices.full[rows].sum())
    for column, name in cluster.resources.names.items():
        slices = compute_slices(name)
        if slices and column < offered.shape[1]:
            gpus += int(offered[:, column].sum()) * slices * FULL_MILLI
    if not cluster.devices.full.any():
        gpus += len(_claimable_gpus(cluster)) * FULL_MILLI
    return [gpus, int(offered[:, facts.CPU].sum()), int(offered[:, facts.MEMORY].sum())]


def total_amounts(cluster: Cluster, amounts: PodAmounts, pool: NodePool | None = None) -> list[int]:
    """What the nodes that take pods offer, without what pods use of it that are in no queue of KAI."""
    rows = pool_rows(cluster, pool)
    rows = rows[~cluster.unschedulable[rows]]
    total = offered_amounts(cluster, rows)
    usable = set(rows.tolist())
    for allocation in cluster.pods.values():
        gang = cluster.gangs.find(allocation.who.group) if allocation.who.group else None
        is_ours = gang is not None and gang.facts is not None and bool(gang.facts.queue)
        if not is_ours and allocation.row in usable:
            taken = amounts.of(allocation.charge)
            total = [max(0, total[at] - taken[at]) for at in range(3)]
    return total


def compute_slices(profile: str) -> int:
    """1, 1 and 3 for `1g.5gb`, `mig-1g.5gb` and `1c.3g.40gb`; 0 for text that is not a profile."""
    found = _COMPUTE.search(profile)
    return int(found[1]) if found is not None else 0


def _claimable_gpus(cluster: Cluster) -> set[str]:
    """The devices of the GPU classes that claims ask for."""
    charges = cluster.pending.charges() | {allocation.charge for allocation in cluster.pods.values()}
    refs = {ref for charge in charges for ref in charge.ask.claims}
    names = {option.matching for ref in refs for option in gpu_options(cluster, ref)}
    return {device for name in names for device in cluster.dra.sets.get(name, ())}


def _smallest_gpu_mib(cluster: Cluster) -> int:
    devices, rows = cluster.devices, cluster.rows
    sizes = devices.memory_mib[:rows][(devices.count[:rows] > 0) & (devices.memory_mib[:rows] > 0)]
    return int(np.min(sizes)) if len(sizes) else NOMINAL_MEMORY_MIB
