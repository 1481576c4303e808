"""The budgets of the month of the last record, from the history in a folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from shoal.cost.budgets import BudgetLine, MonthSpending, budget_lines
from shoal.cost.cost_settings import CostSettings
from shoal.cost.prices.billing import billing
from shoal.cost.prices.machine_prices import machine_prices
from shoal.cost.statement import Period, dimension, statement
from shoal.store.history.history import ReaderOf, read_history
from shoal.units.calendar_windows import TimeWindow, day_starts, month_window


def read_budgets(folder: Path, settings: CostSettings, now_ms: int, reader: ReaderOf | None = None) -> list[BudgetLine]:
    """Takes up to a second: it is called in a thread. Months are those of UTC. Raises UserError where there is no
    history, and where a price is missing."""
    if not settings.file.budgets:
        return []
    history = read_history(folder, reader)
    try:
        recorded = history.ledger.recorded_ms()
        end_ms = now_ms if recorded is None else recorded
        last = datetime.fromtimestamp((end_ms - 1) / 1000, UTC)
        month = month_window(last.year, last.month, UTC)
        window = TimeWindow(month.start_ms, end_ms)
        days = tuple(start for start, _ in day_starts(window, UTC))
        records = history.records(window.start_ms, window.end_ms, days)
        own = settings.file.on_premises
        watts = history.measured_watts(records.machines, window.start_ms, window.end_ms) if own else {}
    finally:
        history.close()
    prices = machine_prices(records.machines, settings.file, last.date(), watts)
    prices.check(settings.where)
    curves = billing(records.machines, prices, settings.file, window).curves
    period = Period(window, days)
    rows = {
        kind: statement(records, curves, period, dimension(kind), settings.mode)
        for kind in ("team", "namespace", "queue")
        if any(getattr(one, kind) for one in settings.file.budgets)
    }
    return budget_lines(settings.file.budgets, rows, MonthSpending(days, window.end_ms, month.end_ms, ()))
