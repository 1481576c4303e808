"""The budgets of the month of the last record, from the history in a folder, and the report for admission."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from shoal.api.budget_report import BUDGET_KINDS, BudgetReport, ReportedBudget
from shoal.cost.budgets import BudgetLine, MonthBudgets, MonthSpending, budget_groups, budget_lines
from shoal.cost.cost_settings import CostSettings
from shoal.cost.prices.billing import billing
from shoal.cost.prices.machine_prices import machine_prices
from shoal.cost.prices.on_premises import needs_power
from shoal.cost.prices.price_file import Budget
from shoal.cost.share_basis import moments_of_use, with_share_basis
from shoal.cost.statement import Period, statement
from shoal.store.history.history import ReaderOf, read_history
from shoal.units.calendar_windows import TimeWindow, day_starts, month_window
from shoal.units.money import cents


def read_budgets(folder: Path, settings: CostSettings, now_ms: int, reader: ReaderOf | None = None) -> MonthBudgets:
    """Takes up to a second: it is called in a thread. Months are those of UTC. Nodes without a price count nothing.
    Raises UserError where there is no history, and where no node has a price."""
    # What was spent depends on use only where GPUs are shared by use; else another source of samples is asked only for
    # the power of own machines.
    measures_power, reads_use = needs_power(settings.file.on_premises), settings.file.share_by == "use"
    history = read_history(folder, reader if measures_power or reads_use else None)
    try:
        recorded = history.ledger.recorded_ms()
        end_ms = now_ms if recorded is None else recorded
        last = datetime.fromtimestamp((end_ms - 1) / 1000, UTC)
        month = month_window(last.year, last.month, UTC)
        window = TimeWindow(month.start_ms, end_ms)
        days = tuple(start for start, _ in day_starts(window, UTC))
        found = (
            history.records(*window, moments_of_use(settings.file, window))
            if reads_use
            else history.records_without_use(*window)
        )
        records = with_share_basis(found, settings.file)
        since_ms = history.ledger.since_ms() or 0
        deleted_ms = history.ledger.deleted_ms() or 0
        watts = history.measured_watts(records.machines, *window) if measures_power else {}
    finally:
        history.close()
    prices = machine_prices(records.machines, settings.file, last.date(), watts)
    if settings.file.budgets:
        prices.check(settings.where)
    curves = billing(records.machines, prices, settings.file, window).curves
    period = Period(window, days)
    rows = {
        kind: statement(records, curves, period, budget_groups(kind), settings.mode)
        for kind in BUDGET_KINDS
        if any(getattr(one, kind) for one in settings.file.budgets)
    }
    lines = budget_lines(settings.file.budgets, rows, MonthSpending(days, window.end_ms, month.end_ms, (), since_ms))
    return MonthBudgets(lines, month, end_ms, prices.unknown, deleted_ms)


def budget_report(found: MonthBudgets, budgets: Sequence[Budget], currency: str) -> BudgetReport:
    """`budgets`: those of which `found` has the lines, in the same order."""
    start = datetime.fromtimestamp(found.month.start_ms / 1000, UTC)
    return BudgetReport(
        currency=currency,
        period=f"{start:%Y-%m}",
        computed_at=_moment(found.computed_ms),
        resets_at=_moment(found.month.end_ms),
        budgets=tuple(_reported(budget, line) for budget, line in zip(budgets, found.lines, strict=True)),
    )


def _reported(budget: Budget, line: BudgetLine) -> ReportedBudget:
    kind, name = budget.subject
    return ReportedBudget(kind, name, budget.per_month, cents(line.spent), cents(line.forecast), budget.enforce)


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, UTC)
