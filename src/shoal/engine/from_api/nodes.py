"""Converts a node to the facts that placement needs.

The rank comes from the name, so that ties break alike after a restart and in whatever order nodes are listed.
Conditions are left out: the node controller turns them into taints, and those are read.
"""

from __future__ import annotations

from zlib import crc32

from shoal.api.node import Node
from shoal.api.node_resource_topology import NodeResourceTopology
from shoal.api.resources import PODS, amounts
from shoal.engine.cluster import GPU_MODEL_LABEL
from shoal.engine.device_notation import layout_of_node, layout_with_zones
from shoal.engine.events import NodeFacts
from shoal.units.errors import Where

POD_SLOTS = 110
"""The kubelet's own default, for nodes written by hand that do not say; the kubelet always does."""


def node_facts_of(node: Node, topology: NodeResourceTopology | None = None) -> NodeFacts:
    """What placement needs to know of the node. GPUs are devices here, and no longer a counted resource.

    `topology` is what the node's exporter says of its NUMA nodes, if there is one.
    """
    allocatable = amounts(node.allocatable())
    allocatable.setdefault(PODS, POD_SLOTS)
    labels = node.metadata.labels
    where = Where(obj=f"Node {node.metadata.key}")
    gpus, layout, counted = layout_of_node(labels, node.metadata.annotations, allocatable, where)
    if topology is not None:
        layout = layout_with_zones(layout, gpus, topology)
    return NodeFacts(
        name=node.metadata.name,
        allocatable=counted,
        labels=labels,
        taints=node.spec.taints,
        unschedulable=node.spec.unschedulable,
        gpus=gpus,
        gpu_model=labels.get(GPU_MODEL_LABEL, ""),
        rank=crc32(node.metadata.name.encode()),
        layout=layout,
    )
