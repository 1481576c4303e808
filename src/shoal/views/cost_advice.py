"""Prints advice about costs: the largest saving first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from shoal.cost.advice import CostAdvice
from shoal.cost.budgets import BudgetLine
from shoal.cost.targets import BudgetPreset
from shoal.views.queue_table import KIND, NAME, NUMBER, WORDS, Cell, show_table

ENFORCED = {"": "no", "spent": "when it is spent", "forecast": "when it is expected to be exceeded"}
_STYLES = {"kept": "green", "at risk": "yellow", "exceeded": "red"}


def show_advice(console: Console, found: Sequence[CostAdvice], currency: str) -> None:
    if not found:
        console.print("no advice: nothing was recorded that would save money")
        return
    ordered = sorted(found, key=lambda one: (-one.saving, one.about, one.what))
    rows: list[list[Cell]] = [[one.about, one.what, one.evidence, f"{one.saving:,.2f}"] for one in ordered]
    show_table(console, ["about", "advice", "because", f"saves {currency}"], [NAME, WORDS, WORDS, NUMBER], rows)


def show_budgets(console: Console, found: Sequence[BudgetLine], currency: str) -> None:
    rows: list[list[Cell]] = [
        [
            one.subject,
            f"{one.spent:,.2f}",
            f"{one.forecast:,.2f}",
            f"{one.limit:,.2f}",
            Text(one.state, _STYLES[one.state]),
            ENFORCED[one.enforce],
        ]
        for one in found
    ]
    headings = ["budget", f"spent {currency}", "whole month", "limit", "state", "new work waits"]
    show_table(console, headings, [NAME, NUMBER, NUMBER, NUMBER, KIND, WORDS], rows, ("new work waits",))


def show_presets(console: Console, presets: Sequence[BudgetPreset]) -> None:
    rows: list[list[Cell]] = [
        [
            one.name,
            f"{one.per_gpu} x {one.layout}" if one.per_gpu > 1 else one.layout,
            one.capacity,
            "yes" if one.scales_to_zero else "no",
            f"{one.utilisation[0]} to {one.utilisation[1]} %",
        ]
        for one in presets
    ]
    headings = ["budget", "GPUs", "capacity", "scales to zero", "utilisation"]
    show_table(console, headings, [NAME, KIND, WORDS, NUMBER, NUMBER], rows)
