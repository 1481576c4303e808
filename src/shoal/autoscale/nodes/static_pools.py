"""Keeps the number of nodes of static pools (`replicas`), which pods do not change.

Missing nodes are of the cheapest offering that the pool may use, within its limits. Of too many nodes those go first
that have not started, then those with the fewest pods.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.autoscale.disruption.protection import is_rescheduled
from shoal.autoscale.nodes.catalog import Catalog
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.plan import NewNode
from shoal.autoscale.nodes.plan_result import new_node
from shoal.autoscale.nodes.planned_node import OfferingKey, PlannedNode
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pool_limits import PoolLimits
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.templates import DaemonPods, PoolTemplate


class StaticChange(msgspec.Struct, frozen=True):
    """What brings static pools to their numbers of nodes."""

    new_nodes: tuple[NewNode, ...] = ()
    removed: tuple[str, ...] = ()
    """Nodes, or the NodeClaims of those that have not registered."""


def static_change(given: PlanningInput) -> StaticChange:
    """Of all static pools of the input."""
    made: list[NewNode] = []
    removed: list[str] = []
    for pool in given.pools:
        if pool.replicas is None:
            continue
        present = [node for node in given.nodes if node.pool == pool.name]
        staying = [node for node in present if not node.is_deleting]
        missing = pool.replicas - len(staying)
        if missing > 0:
            made += _missing(given, pool, given.types.get(pool.name, ()), present, missing)
        elif missing < 0:
            removed += [node.name for node in sorted(staying, key=_value)[:-missing]]
    return StaticChange(tuple(made), tuple(removed))


def _missing(
    given: PlanningInput, pool: NodePool, types: Sequence[InstanceType], present: Sequence[ExistingNode], count: int
) -> list[NewNode]:
    labels = {key for one in types for key in one.labels}
    template = PoolTemplate(Catalog(), pool, types, labels, [DaemonPods(each) for each in given.daemon_sets])
    limits = PoolLimits(template, present)
    left: dict[OfferingKey, int] = {}
    made: list[NewNode] = []
    for number in range(count):
        node = PlannedNode(f"static-{number}", number, template.requirements, template)
        node.offers = node.offers & limits.within()
        node.types = template.types_of(node.offers)
        new = new_node(node, template, left)
        if new is None or not limits.take(node):
            break
        made.append(new)
    return made


def _value(node: ExistingNode) -> tuple[bool, int, str]:
    return node.is_initialized, sum(is_rescheduled(pod) for pod in node.pods), node.name
