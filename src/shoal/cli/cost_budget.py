"""`shoal cost budget`: the budgets of the price file and of Teams in this month, and whether they are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from shoal.cli.cost_source import CostSource
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.cli.cost_source import CostFacts
    from shoal.cost.budgets import BudgetLine


@dataclass(frozen=True, kw_only=True)
class BudgetShown:
    output: TextOutput = TEXTS[0]


@with_options
def budget(source: CostSource, shown: BudgetShown) -> None:
    """Show the budgets of the price file and of Teams: what this month has cost, and what it will."""
    from shoal.cli.formats import console, write
    from shoal.views.cost_advice import show_budgets

    checked(shown.output, TEXTS)
    if source.window != CostSource().window:
        raise UserError("--window is not for budgets", fix="they are of the month of the last record")
    facts = replace(source, window="month").open()
    if not facts.file.budgets:
        fix = "write budgets: [{team: NAME, perMonth: AMOUNT}], or give a team one: shoal tenant apply NAME --budget"
        raise UserError("has no budgets", where=Where(file=str(source.prices or "the price file")), fix=fix)
    found = _lines(facts)
    for note in facts.notes():
        typer.echo(f"shoal: {note}", err=True)
    if shown.output == "text":
        show_budgets(console(), found, facts.file.currency)
    else:
        write({"currency": facts.file.currency, "budgets": found}, shown.output)


def _lines(facts: CostFacts) -> list[BudgetLine]:
    from shoal.api.budget_report import BUDGET_KINDS
    from shoal.cost.budgets import MonthSpending, budget_groups, budget_lines
    from shoal.cost.statement import statement

    records = facts.records(by_day=True)
    curves, period = facts.curves(records), facts.period(by_day=True)
    rows = {kind: statement(records, curves, period, budget_groups(kind)) for kind in BUDGET_KINDS}
    month = MonthSpending(period.days, facts.window.end_ms, facts.month_end_ms(), (), facts.since_ms)
    return budget_lines(facts.file.budgets, rows, month)
