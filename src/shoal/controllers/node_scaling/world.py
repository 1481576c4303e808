"""Represents what one pass of node scaling works with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.autoscale.node_claims.claim import NodeClaim
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pool_modes import PoolMode
from shoal.client.item import Item
from shoal.cloud.port import CloudInstance
from shoal.store.inventory import Inventory
from shoal.store.node_planning import NodeScaling, ScalingOptions


class World(msgspec.Struct, frozen=True):
    """What one pass works with."""

    claims: tuple[NodeClaim, ...]
    nodes: Mapping[str, Node]
    """By name."""
    instances: Mapping[str, CloudInstance]
    """By provider id."""
    pools: Mapping[str, Item]
    modes: Mapping[str, PoolMode]
    types: Mapping[str, Mapping[str, InstanceType]]
    """By pool and name."""

    def of_mode(self, *modes: PoolMode) -> frozenset[str]:
        return frozenset(name for name, mode in self.modes.items() if mode in modes)

    def active_by_node(self) -> dict[str, NodeClaim]:
        """The NodeClaims of pools that are not paused, by node."""
        active = self.of_mode("active")
        return {claim.node: claim for claim in self.claims if claim.node and claim.pool in active}


class Situation(NamedTuple):
    """What is decided about, as of one moment."""

    inventory: Inventory
    options: ScalingOptions
    waiting: Mapping[str, Pod]
    """The pods that a scheduler has refused, by namespace and name."""
    scaling: NodeScaling
    given: PlanningInput
    """With the pools that are active."""
