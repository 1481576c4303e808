"""Represents what a planning decides: nodes to provision, pods on nodes that exist, and pods that stay pending."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.requirements import RequirementSet


class NewNode(msgspec.Struct, frozen=True):
    """A node to provision."""

    pool: str
    requirements: RequirementSet
    types: tuple[InstanceType, ...]
    """All types that would do, the cheapest first."""
    launch: InstanceType
    offering: Offering
    pods: tuple[str, ...]
    zones: tuple[str, ...]
    capacity_types: tuple[str, ...]
    lost_hours: float = 0.0
    """Of the node, by one interruption on average."""
    passed_over: tuple[InstanceType, Offering] | None = None
    """What has a lower price, and costs more with the work that its interruptions lose."""

    @property
    def risk_price(self) -> float:
        """What interruptions cost per hour in expectation."""
        return self.offering.risk_price(self.lost_hours)

    @property
    def price(self) -> float:
        """Per hour."""
        return self.offering.price


class PodRefusal(msgspec.Struct, frozen=True):
    """Why no node is provisioned for a pod."""

    pod: str
    by_pool: Mapping[str, str] = {}
    """The reason of each pool that was tried."""
    reason: str = ""
    """What concerns the pod itself, whatever pools there are."""


class NodePlan(msgspec.Struct, frozen=True):
    """The result of one planning."""

    new_nodes: tuple[NewNode, ...] = ()
    placed: Mapping[str, str] = {}
    """Pods that nodes which exist can take, and these nodes."""
    pending: tuple[PodRefusal, ...] = ()

    @property
    def cost(self) -> tuple[int, float]:
        """What plans are compared by: the pods that stay pending, then the price of what is not paid already, with the
        price of interruptions.
        """
        expected = sum(node.offering.decision_price + node.risk_price for node in self.new_nodes)
        return len(self.pending), round(expected, 9)

    @property
    def price(self) -> float:
        """Of all new nodes, per hour."""
        return sum(node.price for node in self.new_nodes)


class PlanningSettings(msgspec.Struct, frozen=True):
    """How preferences and least numbers of values are treated."""

    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    packing: Literal["Karpenter", "LeastCost"] = "Karpenter"
    """`Karpenter`: nodes grow pod by pod, and their types are chosen at the end. `LeastCost`: of several such plans the
    cheapest, with pods moved between its nodes as long as that saves money."""
