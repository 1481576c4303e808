"""Determines how many nodes of a pool may be disrupted now, by its budgets.

The smallest active budget for the reason rules. A budget with a schedule is active from each of its times on, for its
duration, the end excluded; schedules are in UTC. A budget that cannot be read allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from shoal.autoscale.nodes.pools import DisruptionBudget, DisruptionReason, NodePool
from shoal.units.numbers import whole_of
from shoal.units.schedules import ScheduleError, read_schedule

UNBOUNDED: Final = 2**31 - 1


class BudgetNode(msgspec.Struct, frozen=True):
    """A node of the pool, as far as budgets are concerned."""

    is_initialized: bool
    is_ready: bool
    is_deleting: bool


def allowed_disruptions(pool: NodePool, nodes: Iterable[BudgetNode], reason: DisruptionReason, now: datetime) -> int:
    """How many nodes of the pool may be disrupted for the reason, beside those that are disrupted already."""
    counted = [node for node in nodes if node.is_initialized]
    disrupted = sum(not node.is_ready or node.is_deleting for node in counted)
    most = UNBOUNDED
    for budget in pool.disruption.budgets:
        if not budget.reasons or reason in budget.reasons:
            most = min(most, _allowed(budget, len(counted), now))
    return max(most - disrupted, 0)


def _allowed(budget: DisruptionBudget, nodes: int, now: datetime) -> int:
    if not budget.schedule and budget.duration_s is None:
        return _number(budget.nodes, nodes)
    if not budget.schedule or budget.duration_s is None:
        return 0
    try:
        schedule = read_schedule(budget.schedule)
    except ScheduleError:
        return 0
    start = schedule.next(now.astimezone(UTC) - timedelta(seconds=budget.duration_s))
    if start is None or start > now:
        return UNBOUNDED
    return _number(budget.nodes, nodes)


def _number(text: str, nodes: int) -> int:
    """A number, or a percentage of the nodes, rounded up."""
    if text.endswith("%"):
        percent = whole_of(text[:-1])
        return 0 if percent is None else -(-percent * nodes // 100)
    number = whole_of(text)
    return 0 if number is None else number
