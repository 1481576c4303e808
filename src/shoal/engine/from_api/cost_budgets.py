"""Converts a report of budgets to facts."""

from __future__ import annotations

from shoal.api.budget_report import BudgetReport
from shoal.engine.cost_budgets import CostBudgets, SpentBudget


def cost_budgets_of(report: BudgetReport) -> CostBudgets:
    return CostBudgets(
        tuple(
            SpentBudget(one.kind, one.name, one.per_month, one.spent, one.forecast, one.enforced)
            for one in report.budgets
        ),
        currency=report.currency,
        period=report.period,
        computed_s=report.computed_at.timestamp(),
        resets_s=report.resets_at.timestamp(),
    )
