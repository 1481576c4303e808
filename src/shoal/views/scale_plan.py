"""Represents for users what node planning decides: nodes to provision or remove, at which price, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.autoscale.disruption.decision import DisruptionDecision
from shoal.autoscale.nodes.plan import NewNode, PodRefusal


class PlannedNodeView(msgspec.Struct, frozen=True, rename="camel"):
    """A node to provision."""

    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    usd_per_hour: float
    pods: tuple[str, ...] = ()
    other_types: tuple[str, ...] = ()
    """Types that would do too, the cheapest first."""
    interruption_usd_per_hour: float = 0.0
    """What the work costs that interruptions would lose, in expectation."""
    passed_over: str = ""
    """What has a lower price, and costs more with its interruptions."""


class PodRefusalView(msgspec.Struct, frozen=True, rename="camel"):
    """Why nothing is provisioned for a pod."""

    pod: str
    reason: str = ""
    pools: Mapping[str, str] = {}


class RemovalView(msgspec.Struct, frozen=True, rename="camel"):
    """Nodes to remove, and the nodes that replace them first."""

    method: str
    nodes: tuple[str, ...]
    why: str
    saved_usd_per_hour: float
    replacements: tuple[PlannedNodeView, ...] = ()


class ScalePlan(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of `shoal scale plan`."""

    provision: tuple[PlannedNodeView, ...] = ()
    on_existing: Mapping[str, str] = {}
    """Pending pods that nodes which exist or start can take, and these nodes."""
    pending: tuple[PodRefusalView, ...] = ()
    remove: tuple[RemovalView, ...] = ()
    kept: Mapping[str, str] = {}
    """Nodes that are not removed, and why."""
    usd_per_hour: float = 0.0
    """Of the nodes to provision."""
    notes: Sequence[str] = ()


class PoolView(msgspec.Struct, frozen=True, rename="camel"):
    """A pool, with its nodes and limits."""

    name: str
    weight: int
    nodes: int
    starting: int
    gpus: int
    usd_per_hour: float
    instance_types: int
    """How many types it may use."""
    cheapest: str
    limits: Mapping[str, str] = {}
    policy: str = ""
    disruptions_allowed: int | None = None
    """For underused nodes; None where there is no bound."""
    fault: str = ""
    """Why it cannot serve any pod."""


def node_view(node: NewNode) -> PlannedNodeView:
    """A node to provision."""
    return PlannedNodeView(
        node.pool,
        node.launch.name,
        node.offering.zone,
        node.offering.capacity_type,
        round(node.price, 5),
        node.pods,
        tuple(one.name for one in node.types if one.name != node.launch.name),
        round(node.risk_price, 5),
        passed_over_text(node),
    )


def passed_over_text(node: NewNode) -> str:
    """Why the node is not of the offering with the lowest price; empty if it is."""
    if node.passed_over is None:
        return ""
    one, offering = node.passed_over
    return (
        f"{one.name} ({offering.capacity_type}) costs ${offering.price:,.2f} per hour, and its interruptions would "
        f"lose work worth ${offering.risk_price(node.lost_hours):,.2f} per hour"
    )


def refusal_view(refusal: PodRefusal) -> PodRefusalView:
    """Why nothing is provisioned for a pod."""
    return PodRefusalView(refusal.pod, refusal.reason, dict(refusal.by_pool))


def removal_view(decision: DisruptionDecision) -> RemovalView:
    """Nodes to remove."""
    return RemovalView(
        decision.method,
        decision.nodes,
        decision.why,
        round(decision.saved, 5),
        tuple(node_view(node) for node in decision.replacements),
    )
