"""Counts the nodes of a driver upgrade for metrics, as NVIDIA's operator counts them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.states import IN_PROGRESS, UpgradeState


class UpgradeFigures(msgspec.Struct, frozen=True):
    in_progress: int = 0
    """Without failed nodes."""
    done: int = 0
    failed: int = 0
    available: int = 0
    """Nodes that could start now."""
    pending: int = 0

    def __add__(self, other: UpgradeFigures) -> UpgradeFigures:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return UpgradeFigures(*(mine + theirs for mine, theirs in pairs))


def upgrade_figures(nodes: Iterable[UpgradeNode], slots: int) -> UpgradeFigures:
    """`slots`: how many nodes may start."""
    states = [node.state for node in nodes if node.is_managed]
    failed, pending = states.count(UpgradeState.FAILED), states.count(UpgradeState.UPGRADE_REQUIRED)
    return UpgradeFigures(
        in_progress=sum(state in IN_PROGRESS for state in states) - failed,
        done=states.count(UpgradeState.DONE),
        failed=failed,
        available=min(slots, pending),
        pending=pending,
    )
