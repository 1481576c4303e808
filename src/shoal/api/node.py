"""Nodes: what they have, what keeps pods off them, and whether they are well."""

from __future__ import annotations

from msgspec import field

from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta
from shoal.api.taints import Taint
from shoal.api.wire import ApiStruct, Quantities


class NodeSpec(ApiStruct, frozen=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = field(default="", name="providerID")


class NodeStatus(ApiStruct, frozen=True):
    capacity: Quantities = field(default_factory=dict)
    allocatable: Quantities = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class Node(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

    def allocatable(self) -> Quantities:
        """What pods may use; the API server sets it to the capacity if it is absent."""
        return self.status.allocatable or self.status.capacity

    def is_ready(self) -> bool:
        """True unless the node says otherwise: a hand-written node has no conditions and is meant to work."""
        return all(c.status == "True" for c in self.status.conditions if c.type == "Ready")
