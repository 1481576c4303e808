"""Decides one pass of a driver upgrade over all nodes, as a pure function.

Each node moves at most one state per pass, judged by the states at the start: a place that becomes free in a pass is
used in the next one. A pass that is repeated with the same facts decides the same.

The limits hold for nodes that are in use. A node that is unschedulable anyway starts also without a free place, so that
nodes cordoned by hand, which use up `maxUnavailable`, can be upgraded at all. Skipped nodes never start.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.operator.upgrades.decision import UpgradeDecision, moves, removed, stays
from shoal.operator.upgrades.limits import upgrade_slots
from shoal.operator.upgrades.lost_work import NodeWork, by_lost_work
from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.policy import UpgradeOptions, UpgradePolicy
from shoal.operator.upgrades.states import REQUESTED, SKIP_LABEL, UpgradeState
from shoal.operator.upgrades.steps import decide_node

_DRAINED_SOON = frozenset(
    {
        UpgradeState.CORDON_REQUIRED,
        UpgradeState.WAIT_FOR_JOBS,
        UpgradeState.POD_DELETION,
        UpgradeState.DRAIN_REQUIRED,
    }
)
"""Pods on a node in such a state stop anyway."""


class UpgradePass(msgspec.Struct, frozen=True):
    decisions: tuple[UpgradeDecision, ...] = ()
    """One for each managed node, in the order of the list."""
    slots: int | None = None
    """How many nodes could start; None: automatic upgrades are off, and nothing is decided."""


def decide_pass(
    nodes: Sequence[UpgradeNode],
    policy: UpgradePolicy,
    options: UpgradeOptions,
    now_s: int,
    work: NodeWork | None = None,
) -> UpgradePass:
    """`work`: read only if the options order nodes by it."""
    if not policy.is_automatic:
        return UpgradePass()
    managed = [node for node in nodes if node.is_managed]
    slots = upgrade_slots(managed, policy)
    failed = [node.name for node in managed if node.state == UpgradeState.FAILED] if options.stops_at_failure else []
    if failed:
        slots = 0
    waiting = [node for node in managed if node.state == UpgradeState.UPGRADE_REQUIRED]
    if options.least_lost_work_first and work is not None:
        waiting = _ordered(waiting, managed, work, now_s)
    started = _starts(waiting, slots, failed[0] if failed else "")
    return UpgradePass(
        tuple(
            started[node.name]
            if node.state == UpgradeState.UPGRADE_REQUIRED
            else decide_node(node, policy, options, now_s)
            for node in managed
        ),
        slots,
    )


def _ordered(
    waiting: Sequence[UpgradeNode], managed: Sequence[UpgradeNode], work: NodeWork, now_s: int
) -> list[UpgradeNode]:
    by_name = {node.name: node for node in waiting}
    draining = [node.name for node in managed if node.state in _DRAINED_SOON]
    candidates = [node.name for node in waiting if not node.is_skipped]
    skipped = [node for node in waiting if node.is_skipped]
    return [by_name[name] for name in by_lost_work(candidates, work, now_s, draining)] + skipped


def _starts(waiting: Sequence[UpgradeNode], slots: int, failed: str) -> dict[str, UpgradeDecision]:
    """`waiting`: in the order in which nodes start. The request of an upgrade is granted once the state says so.
    `failed`: a node whose failure stops all others.
    """
    decided = {}
    for node in waiting:
        changes = removed(node, REQUESTED) if node.annotations.get(REQUESTED) == "true" else {}
        if node.is_skipped:
            decided[node.name] = stays(node, f"skipped by the label {SKIP_LABEL}", changes)
        elif failed:
            decided[node.name] = stays(node, f"waits: the upgrade of node {failed} has failed", changes)
        elif slots > 0 or node.is_unschedulable:
            slots -= 1
            decided[node.name] = moves(node, UpgradeState.CORDON_REQUIRED, "the upgrade starts", changes)
        else:
            decided[node.name] = stays(node, "waits for other nodes: maxParallelUpgrades or maxUnavailable", changes)
    return decided
