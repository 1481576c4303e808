"""How many nodes a pool's budgets allow to disrupt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from build.pool_worlds import pool
from shoal.autoscale.disruption.budgets import UNBOUNDED, BudgetNode, allowed_disruptions

READY = BudgetNode(is_initialized=True, is_ready=True, is_deleting=False)
UNREADY = BudgetNode(is_initialized=True, is_ready=False, is_deleting=False)
DELETING = BudgetNode(is_initialized=True, is_ready=True, is_deleting=True)
STARTING = BudgetNode(is_initialized=False, is_ready=False, is_deleting=False)
NIGHT = {"nodes": "0", "schedule": "0 22 * * *", "duration": "8h"}


def _allowed(*budgets: dict[str, Any], nodes: list[BudgetNode] | None = None, at: str = "2026-11-27T12:00:00") -> int:
    chosen = pool(disruption={"budgets": list(budgets)})
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    return allowed_disruptions(chosen, nodes or [READY] * 10, "Underutilized", now)


@pytest.mark.parametrize(
    ("budgets", "allowed"),
    [
        ([], UNBOUNDED),
        ([{"nodes": "3"}], 3),
        ([{"nodes": "25%"}], 3),
        ([{"nodes": "100%"}], 10),
        ([{"nodes": "5"}, {"nodes": "2"}], 2),
        ([{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "4"}], 4),
        ([{"nodes": "some"}], 0),
        ([{"nodes": "9", "schedule": "never", "duration": "1h"}], 0),
        ([{"nodes": "9", "schedule": "0 9 * * *"}], 0),
        ([{"nodes": "9", "duration": "1h"}], 0),
    ],
)
def test_the_smallest_active_budget_rules(budgets: list[dict[str, Any]], allowed: int) -> None:
    assert _allowed(*budgets) == allowed


@pytest.mark.parametrize(
    ("at", "allowed"),
    [
        ("2026-11-27T21:59:59", 4),
        ("2026-11-27T22:00:00", 0),
        ("2026-11-28T05:59:59", 0),
        ("2026-11-28T06:00:00", 4),
    ],
)
def test_a_window_covers_its_start_and_not_its_end(at: str, allowed: int) -> None:
    assert _allowed(NIGHT, {"nodes": "4"}, at=at) == allowed


def test_nodes_that_are_not_ready_or_deleting_are_disrupted_already() -> None:
    assert _allowed({"nodes": "4"}, nodes=[READY] * 8 + [UNREADY, DELETING]) == 2
    assert _allowed({"nodes": "1"}, nodes=[READY, UNREADY, DELETING]) == 0


def test_nodes_that_start_are_not_counted() -> None:
    assert _allowed({"nodes": "50%"}, nodes=[READY] * 2 + [STARTING] * 10) == 1
