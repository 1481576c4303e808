"""Converts nodes to what topology placement counts: plain resources by name, and what other pods hold."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.node import Node
from shoal.api.resources import PODS, amounts, is_extended
from shoal.api.topology import HOSTNAME_LABEL
from shoal.engine.from_api.nodes import POD_SLOTS
from shoal.engine.queues.topology_facts import QueueNode


def queue_node_of(node: Node, taken: Mapping[str, int]) -> QueueNode:
    """`taken` is what pods hold that no admission accounts for, `pods` among it."""
    name = node.metadata.name
    allocatable = amounts(node.allocatable())
    allocatable.setdefault(PODS, POD_SLOTS)
    capacity = amounts(node.status.capacity)
    return QueueNode(
        name=name,
        # A kubelet always sets the host name; nodes written by hand often lack it.
        labels={HOSTNAME_LABEL: name, **node.metadata.labels},
        allocatable=allocatable,
        installed={
            key: total for key, total in capacity.items() if is_extended(key) and total > allocatable.get(key, 0)
        },
        taints=node.spec.taints,
        ready=node.is_ready(),
        unschedulable=node.spec.unschedulable,
        taken=dict(taken),
    )
