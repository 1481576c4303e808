"""Represents what one pass of node scaling works with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.autoscale.disruption.decision import DisruptionDecision
from shoal.autoscale.disruption.protection import is_rescheduled
from shoal.autoscale.node_claims.claim import NodeClaim
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.nodes.pool_modes import PoolMode
from shoal.autoscale.provisioning_requests.demand import Demand
from shoal.client.item import Item
from shoal.cloud.port import CloudInstance
from shoal.controllers.node_scaling.cluster_state import ScalingState, unschedulable
from shoal.store.freed_capacity import FreedCapacity
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
    published: frozenset[str] = frozenset()
    """Nodes whose GPUs are published as devices of resource claims."""

    def of_mode(self, *modes: PoolMode) -> frozenset[str]:
        return frozenset(name for name, mode in self.modes.items() if mode in modes)

    def launched(self) -> frozenset[str]:
        """The nodes that exist, or that the cloud has granted, by their names in plans."""
        return frozenset(self.nodes) | {claim.node or claim.name for claim in self.claims if claim.provider_id}

    def claims_by_home(self) -> dict[str, str]:
        """The names of the NodeClaims, by the names of their nodes in plans."""
        return {claim.node or claim.name: claim.name for claim in self.claims}

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
    """With the pools that are active, capacity that is kept, and capacity that is requested."""
    demand: Demand
    homeless: frozenset[str]
    """Pods of kept capacity that find no place, by namespace and name."""
    freed: FreedCapacity
    """What becomes free before nodes are provisioned."""

    def used(self) -> frozenset[str]:
        """Nodes with pods, also with those for which capacity is kept."""
        return frozenset(node.name for node in self.given.nodes if any(is_rescheduled(pod) for pod in node.pods))

    def booked(self) -> frozenset[str]:
        """Nodes on which capacity is kept."""
        kept = {key for each in self.demand.booked for key in each.keys}
        return frozenset(node.name for node in self.given.nodes if any(pod_key(pod) in kept for pod in node.pods))


def is_outdated(decision: DisruptionDecision, found: Situation, state: ScalingState) -> bool:
    """Whether a pod has come to one of the nodes while they were searched for, or waits for a place like theirs."""
    state.refresh()
    if unschedulable(state.inventory()).keys() - found.waiting.keys():
        return True
    pods = {node.name: node.existing.pods for node in found.scaling.nodes if node.name in decision.nodes}
    known = {pod.metadata.key for each in pods.values() for pod in each}
    cluster = state.cluster
    return any(cluster.names[each.row] in pods and key not in known for key, each in cluster.pods.items())
