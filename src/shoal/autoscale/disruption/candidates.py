"""Represents the nodes that may be disrupted: candidates, their price, and the cost of evicting their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from shoal.api.pod import Pod
from shoal.autoscale.disruption.protection import (
    DisruptionLimit,
    eviction_cost,
    is_rescheduled,
    node_annotation,
    protection,
)
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, ZONE_LABEL


class DisruptableNode(msgspec.Struct, frozen=True):
    """A node that exists, with what decides whether it may be disrupted."""

    existing: ExistingNode
    is_ready: bool = True
    is_consolidatable: bool | None = None
    """Whether it was quiet long enough; None where that follows from `last_pod_event`."""
    last_pod_event: datetime | None = None
    drifted_since: datetime | None = None
    termination_grace_s: float | None = None
    created: datetime | None = None
    expire_after_s: float | None = None

    @property
    def name(self) -> str:
        return self.existing.name


class Candidate(msgspec.Struct, frozen=True):
    """A node that nothing keeps from being disrupted."""

    node: DisruptableNode
    pool: NodePool
    instance_type: InstanceType | None
    rescheduled: tuple[Pod, ...]
    eviction_cost: float
    """The sum of the positive costs of its pods."""
    price: float | None
    """Of its offering; None where that is not known."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_empty(self) -> bool:
        return self.eviction_cost == 0

    @property
    def capacity_type(self) -> str:
        return self.node.existing.node.metadata.labels.get(CAPACITY_TYPE_LABEL, "")

    @property
    def order(self) -> tuple[float, str]:
        """What saves most for each eviction comes first."""
        return -(self.price or 0.0) / (1 + self.eviction_cost), self.name


def blocker(
    node: DisruptableNode, limits: Iterable[DisruptionLimit], now: datetime, *, ignores_pods: bool = False
) -> str | None:
    """Why the node may not be disrupted; None if it may. `ignores_pods`: its pods do not protect it."""
    existing = node.existing
    if existing.is_deleting:
        return "it is being deleted"
    if not existing.is_initialized:
        return "it is not initialized"
    annotation = node_annotation(existing.node.metadata.annotations)
    if annotation is not None:
        return f"it has annotation {annotation}"
    if ignores_pods:
        return None
    listed = tuple(limits)
    return next((reason for pod in existing.pods if (reason := protection(pod, listed, now)) is not None), None)


def candidate_of(node: DisruptableNode, pool: NodePool, types: Mapping[str, InstanceType]) -> Candidate:
    """The node with its pods and its price."""
    pods = tuple(pod for pod in node.existing.pods if is_rescheduled(pod))
    cost = sum(max(eviction_cost(pod), 0.0) for pod in pods)
    instance = types.get(node.existing.instance_type)
    return Candidate(node, pool, instance, pods, cost, price_of(node.existing, instance))


def price_of(existing: ExistingNode, instance: InstanceType | None) -> float | None:
    """What the removal of the node would save per hour: nothing if it is paid already."""
    offering = offering_of(existing, instance)
    return None if offering is None else offering.decision_price


def offering_of(existing: ExistingNode, instance: InstanceType | None) -> Offering | None:
    """The node's offering, whether or not it is available at the moment."""
    labels = existing.node.metadata.labels
    place = labels.get(ZONE_LABEL), labels.get(CAPACITY_TYPE_LABEL)
    offerings = instance.offerings if instance is not None else ()
    return next((each for each in offerings if (each.zone, each.capacity_type) == place), None)


def consolidation_blocker(node: DisruptableNode, pool: NodePool, now: datetime) -> str | None:
    """Why the pool's rules keep the node from being consolidated now; None if they do not."""
    after_s = pool.disruption.consolidate_after_s
    if pool.is_static:
        return "its pool has a fixed number of nodes"
    if after_s is None:
        return "its pool is never consolidated"
    if node.is_consolidatable is False:
        return "it was not quiet long enough"
    if node.is_consolidatable is None and node.last_pod_event is not None:
        quiet_s = (now - node.last_pod_event).total_seconds()
        if quiet_s < after_s:
            return f"it was quiet for {quiet_s:g} s of {after_s:g} s"
    return None
