"""Computes how many further nodes may start their upgrade, from the states at the start of a pass.

Nodes in progress count against `maxParallelUpgrades`, failed ones included. Nodes that are unschedulable, not ready or
about to be cordoned count against `maxUnavailable`, for whatever reason they are so. A node that is unschedulable and
still in the state `cordon-required` counts twice, as in NVIDIA's operator: fewer nodes start, and only for one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.policy import UpgradePolicy
from shoal.operator.upgrades.states import IN_PROGRESS, NOT_STARTED, UpgradeState


def upgrade_slots(nodes: Sequence[UpgradeNode], policy: UpgradePolicy) -> int:
    states = Counter(node.state for node in nodes)
    in_progress = sum(states[state] for state in IN_PROGRESS)
    total = in_progress + sum(states[state] for state in NOT_STARTED)
    slots = policy.max_parallel - in_progress if policy.max_parallel else states[UpgradeState.UPGRADE_REQUIRED]
    most_unavailable = policy.most_unavailable(total)
    unavailable = sum(node.is_unavailable for node in nodes) + states[UpgradeState.CORDON_REQUIRED]
    if unavailable >= most_unavailable:
        return 0
    # All nodes at once are allowed: those that are unavailable already do not hold the others back.
    most = most_unavailable - unavailable if most_unavailable < total else most_unavailable
    return max(0, min(slots, most))
