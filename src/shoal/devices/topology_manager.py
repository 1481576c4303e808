"""Implements the kubelet's Topology Manager for GPUs: on which NUMA nodes the devices of a container may be.

`none` ignores NUMA nodes. `best-effort` uses the fewest sufficient NUMA nodes; `restricted` rejects a container that
would need fewer on an empty machine; `single-numa-node` rejects one that needs two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.pod_refusal import Refused

POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
_ERROR = Refused("TopologyAffinityError", "Resources cannot be allocated with Topology locality")

Pool = Mapping[str, Sequence[PhysicalDevice]]


def nodes_for(
    policy: str, amounts: Sequence[tuple[str, int]], free: Pool, every: Pool
) -> frozenset[int] | Refused | None:
    """The NUMA nodes for the devices; None: any."""
    if policy == "none":
        return None
    fitting = _fewest(amounts, free)
    if fitting is None:
        return None if policy == "best-effort" else _ERROR
    least = _fewest(amounts, every) or fitting
    if policy == "single-numa-node" and len(fitting) > 1:
        return _ERROR
    if policy == "restricted" and len(fitting) > len(least):
        return _ERROR
    return fitting


def _fewest(amounts: Sequence[tuple[str, int]], pool: Pool) -> frozenset[int] | None:
    for mask in _masks(pool):
        if all(sum(device.numa in mask for device in pool.get(name, ())) >= count for name, count in amounts):
            return mask
    return None


def _masks(pool: Pool) -> Iterator[frozenset[int]]:
    """Sets of NUMA nodes, the smallest first."""
    nodes = sorted({device.numa for devices in pool.values() for device in devices})
    for size in range(1, len(nodes) + 1):
        yield from map(frozenset, combinations(nodes, size))
