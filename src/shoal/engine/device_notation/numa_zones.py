"""Adds the NUMA nodes that a node's exporter reports (NodeResourceTopology) to the layout of its devices.

Zones say how many GPUs they hold, not which. Devices are numbered zone by zone, as the driver numbers them by bus
address; a node on which that is not so can say it with `shoal.dev/gpu-numa`, and is believed.
"""

from __future__ import annotations

from msgspec import structs

from shoal.api.node_resource_topology import NodeResourceTopology, Zone
from shoal.devices.layout import Layout, NumaPolicy
from shoal.engine.device_notation import names
from shoal.engine.devices.planes import MOST_NUMA

_POLICY_ATTRIBUTE = "topologyManagerPolicy"
_POLICIES: dict[str, NumaPolicy] = {
    "none": "none",
    "best-effort": "best-effort",
    "restricted": "restricted",
    "single-numa-node": "single-numa-node",
}
_OLDER_POLICIES: dict[str, NumaPolicy] = {
    "SingleNUMANode": "single-numa-node",
    "Restricted": "restricted",
    "BestEffort": "best-effort",
}
_DIGITS = "0123456789"


def layout_with_zones(layout: Layout, gpus: int, topology: NodeResourceTopology) -> Layout:
    """The layout with NUMA nodes, their cores and the kubelet's policy; what the node says itself stays."""
    zones = sorted(
        ((node, zone) for zone in topology.zones if zone.type == "Node" and (node := _number(zone)) is not None),
        key=lambda each: each[0],
    )
    numa: list[int] = []
    cores = [-1] * (max((node for node, _ in zones), default=-1) + 1)
    for node, zone in zones:
        held = {resource.name: resource for resource in zone.resources}
        if names.GPU in held:
            numa += [node] * (held[names.GPU].capacity.value() // max(layout.replicas, 1))
        if "cpu" in held:
            cores[node] = held["cpu"].allocatable.milli_value()
    return structs.replace(
        layout,
        numa=layout.numa or tuple(numa[:gpus]),
        numa_cores_milli=layout.numa_cores_milli or tuple(cores),
        numa_policy=_policy(topology) if layout.numa_policy == "none" else layout.numa_policy,
    )


def _number(zone: Zone) -> int | None:
    digits = zone.name[len(zone.name.rstrip(_DIGITS)) :]
    number = int(digits) if 0 < len(digits) < 4 else None
    return number if number is not None and number < MOST_NUMA else None


def _policy(topology: NodeResourceTopology) -> NumaPolicy:
    for attribute in topology.attributes:
        if attribute.name == _POLICY_ATTRIBUTE:
            return _POLICIES.get(attribute.value, "none")
    for older in topology.topology_policies:
        for prefix, policy in _OLDER_POLICIES.items():
            if older.startswith(prefix):
                return policy
    return "none"
