"""Represents what one pass decides about a node: its next state, what to do there, and why.

The environment carries out the action first and writes the state afterwards, in one patch with the annotations. Then a
pass after a crash decides the same again, and a node that was unschedulable before never loses its annotation early.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.states import WAITS_FOR_SAFE_LOAD, WAS_UNSCHEDULABLE, UpgradeState


class NodeAction(Enum):
    """What the environment does on a node. Repeating an action that is in progress has no effect."""

    CORDON = "cordon"
    UNCORDON = "uncordon"
    EVICT_GPU_PODS = "evict GPU pods"
    DRAIN = "drain"
    RESTART_DRIVER_POD = "restart driver pod"


class UpgradeDecision(msgspec.Struct, frozen=True):
    node: str
    state: str
    reason: str = ""
    """Why the state changed, or what the node waits for; for Events and the status."""
    action: NodeAction | None = None
    annotations: dict[str, str | None] = {}
    """To set; None: to remove. Only changes."""


def stays(node: UpgradeNode, reason: str = "", annotations: dict[str, str | None] | None = None) -> UpgradeDecision:
    return UpgradeDecision(node.name, node.state, reason, None, annotations or {})


def waits_for(node: UpgradeNode, action: NodeAction, reason: str) -> UpgradeDecision:
    """The result of the action changes the state, or the next pass does."""
    return UpgradeDecision(node.name, node.state, reason, action)


def moves(
    node: UpgradeNode, state: UpgradeState, reason: str, annotations: dict[str, str | None] | None = None
) -> UpgradeDecision:
    return UpgradeDecision(node.name, state, reason, None, annotations or {})


def ends(node: UpgradeNode, reason: str, annotations: dict[str, str | None] | None = None) -> UpgradeDecision:
    """The driver runs: the node becomes schedulable again, unless it was unschedulable before the upgrade."""
    changes = annotations or {}
    if WAS_UNSCHEDULABLE not in node.annotations:
        return moves(node, UpgradeState.UNCORDON_REQUIRED, reason, changes)
    kept = f"{reason}; the node was unschedulable before the upgrade and remains so"
    return moves(node, UpgradeState.DONE, kept, {**changes, WAS_UNSCHEDULABLE: None})


def removed(node: UpgradeNode, *names: str) -> dict[str, str | None]:
    """The removal of those annotations that the node has."""
    return {name: None for name in names if name in node.annotations}


def allowed_load(node: UpgradeNode) -> dict[str, str | None]:
    """Removes the annotation for which the init container of the driver pod waits."""
    return removed(node, WAITS_FOR_SAFE_LOAD) if node.annotations.get(WAITS_FOR_SAFE_LOAD) else {}
