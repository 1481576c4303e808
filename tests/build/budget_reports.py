"""Writes what a team has spent as the recorder does, beside a small cluster."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

from build.small_clusters import SmallCluster
from shoal.api.budget_report import BudgetReport, ReportedBudget
from shoal.client.kind import NAMESPACES
from shoal.client.refusals import AlreadyExistsError
from shoal.controllers.history.budget_publisher import BudgetPublisher

NAMESPACE = "kube-system"


def budget_report(cluster: SmallCluster, spent: int, *, days_left: float = 3) -> BudgetReport:
    now = cluster.clock.now().replace(microsecond=0)
    red = ReportedBudget("team", "red", Decimal(1000), Decimal(spent), Decimal(spent), "spent")
    return BudgetReport(period="2026-11", computed_at=now, resets_at=now + timedelta(days=days_left), budgets=(red,))


async def write_budgets(cluster: SmallCluster, spent: int, *, days_left: float = 3) -> None:
    with suppress(AlreadyExistsError):
        await cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await BudgetPublisher(cluster.context(), NAMESPACE).publish(budget_report(cluster, spent, days_left=days_left))
