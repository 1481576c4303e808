"""Writes what a team has spent as the recorder does, beside a small cluster."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from build.small_clusters import SmallCluster
from shoal.api.budget_report import BudgetReport, ReportedBudget
from shoal.controllers.history.budget_publisher import BudgetPublisher

NAMESPACE = "kube-system"


def budget_report(cluster: SmallCluster, spent: int, *, days_left: float = 3, age_s: float = 0) -> BudgetReport:
    now = cluster.clock.now().replace(microsecond=0)
    computed = now - timedelta(seconds=age_s)
    red = ReportedBudget("team", "red", Decimal(1000), Decimal(spent), Decimal(spent), "spent")
    return BudgetReport(
        period="2026-11", computed_at=computed, resets_at=now + timedelta(days=days_left), budgets=(red,)
    )


async def write_budgets(cluster: SmallCluster, spent: int, *, days_left: float = 3, age_s: float = 0) -> None:
    report = budget_report(cluster, spent, days_left=days_left, age_s=age_s)
    await BudgetPublisher(cluster.context(), NAMESPACE).publish(report)
