"""Finds what becomes free on present nodes before others are provisioned, for the commands and the controller.

The GPUs of a node get another MIG layout only where a user allows it (`shoal.dev/mig-repartition: "true"` on the Node),
no pod holds them, its MIG manager has applied the present layout, and no NodePool made the node: a pool states the
layout of its nodes itself. After a change the node is left alone for an hour, so that layouts do not alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from shoal.api.node import Node
from shoal.api.resources import amounts
from shoal.autoscale.nodes.before_provisioning import (
    Freeing,
    FreeingPolicy,
    Layouts,
    RepartitionableNode,
    UnitOutcome,
    WaitingUnit,
    held_back,
    layouts_serving,
    outcome,
    waiting_units,
)
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.yielding_pods import freed_by_pods
from shoal.devices.names import is_accelerator
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.from_api import ask_of_pod
from shoal.store.mig_relabelling import MIG_CONFIG, is_known_layout, layouts_for, under_layout

ALLOWED: Final = "shoal.dev/mig-repartition"
"""A label or annotation of a Node: `true` where idle GPUs may get another MIG layout."""
CHANGED: Final = "shoal.dev/mig-repartitioned"
"""An annotation of a Node: when it got its layout."""
_STATE: Final = "nvidia.com/mig.config.state"
_SUCCESS, _FAILED = "success", "failed"
_PAUSE_S: Final = 3600.0


class FreedCapacity(msgspec.Struct, frozen=True):
    """What the steps before provisioning would do."""

    policy: FreeingPolicy
    outcomes: Sequence[tuple[WaitingUnit, UnitOutcome]] = ()
    layouts: dict[str, Layouts] = {}
    """By unit, also of those that are not held back any more."""

    def added_to(self, given: PlanningInput) -> PlanningInput:
        """The input without the units for which no node is provisioned yet."""
        return held_back(self.outcomes, given)

    @property
    def is_holding(self) -> bool:
        """Whether any unit is held back: what becomes free for it must not be removed meanwhile."""
        return any(found.hold is not None for _, found in self.outcomes)

    def over_after_s(self, now_s: float) -> float | None:
        """When the first unit is not held back any more."""
        holds = [found.hold.until_s for _, found in self.outcomes if found.hold is not None]
        return max(min(holds) - now_s, 0.0) if holds else None


def freed_capacity(cluster: Cluster, given: PlanningInput, policy: FreeingPolicy, now: datetime) -> FreedCapacity:
    """For the pods that wait."""
    if not given.pods or not policy.order:
        return FreedCapacity(policy)
    now_s = now.timestamp()
    units = waiting_units(given, now_s)
    layouts: dict[str, Layouts] = {}
    if "repartition" in policy.order:
        nodes = list(_repartitionable(given.nodes, cluster, now_s, policy.timeouts_s["repartition"]))
        layouts = layouts_serving(given, units, nodes) if nodes else {}
    by_pods = freed_by_pods(cluster, units, policy, now_s)
    freeing = Freeing(layouts, by_pods.get("consolidate", {}), by_pods.get("reclaim", {}))
    return FreedCapacity(policy, [(unit, outcome(unit, freeing, policy, now_s)) for unit in units], layouts)


def _repartitionable(
    nodes: Iterable[ExistingNode], cluster: Cluster, now_s: float, timeout_s: float
) -> Iterable[RepartitionableNode]:
    for existing in nodes:
        node = existing.node
        if existing.is_managed or existing.is_deleting or not node.is_ready() or not _is_allowed(node):
            continue
        age_s = now_s - _changed_s(node)
        if age_s < timeout_s and _is_under_way(node):
            layout = node.metadata.labels[MIG_CONFIG]
            yield RepartitionableNode(existing, {layout: under_layout(node, layout)})
        elif age_s >= _PAUSE_S and node.metadata.labels.get(_STATE) == _SUCCESS and _is_idle(cluster, existing):
            names = dict.fromkeys((*layouts_for(node, (), 0), *layouts_for(node, (), 1)))
            yield RepartitionableNode(existing, {name: under_layout(node, name) for name in names})


def _is_allowed(node: Node) -> bool:
    meta = node.metadata
    return "true" in (meta.labels.get(ALLOWED), meta.annotations.get(ALLOWED))


def _is_idle(cluster: Cluster, existing: ExistingNode) -> bool:
    """Whether no pod holds a part of its GPUs, also none for which capacity is only kept."""
    row = cluster.row_of.get(existing.name)
    if row is None:
        return False
    asks = [cluster.pods[pod].ask for pod in cluster.pods_on(row)] + [ask_of_pod(pod) for pod in existing.pods]
    return not any(may_hold_gpus(ask) for ask in asks)


def may_hold_gpus(ask: Ask) -> bool:
    """Whether a pod may hold a part of a GPU. Device plugins can give their resources any name."""
    asks_gpus = any(is_accelerator(name) or "gpu" in name for name, _ in ask.requests)
    return asks_gpus or bool(ask.devices or ask.claims)


def _is_under_way(node: Node) -> bool:
    """Whether the node does not advertise the devices of its layout yet."""
    layout = node.metadata.labels.get(MIG_CONFIG, "")
    if not is_known_layout(node, layout) or node.metadata.labels.get(_STATE) == _FAILED:
        return False
    wanted, there = amounts(under_layout(node, layout).allocatable()), amounts(node.allocatable())
    return any(there.get(name, 0) != amount for name, amount in wanted.items())


def _changed_s(node: Node) -> float:
    """When Shoal changed the layout last; minus infinity if it never did."""
    try:
        return datetime.fromisoformat(node.metadata.annotations.get(CHANGED, "")).timestamp()
    except ValueError:
        return float("-inf")
