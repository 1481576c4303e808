"""Prints the results of calculators, and which calculators there are."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console

from shoal.cost.calculators import Calculator, Figure
from shoal.units.money import cents
from shoal.views.queue_table import NAME, NUMBER, WORDS, Cell, show_table


def show_figures(console: Console, found: Sequence[Figure]) -> None:
    if any(isinstance(one.value, str) for one in found):
        rows: list[list[Cell]] = [[one.name, _shown(one), one.unit] for one in found]
        show_table(console, ["figure", "value", ""], [NAME, WORDS, NAME], rows)
        return
    show_table(
        console, ["figure", "value", ""], [NAME, NUMBER, NAME], [[one.name, _shown(one), one.unit] for one in found]
    )


def figure_rows(found: Sequence[Figure]) -> list[dict[str, str | int]]:
    """For programs: amounts as texts with two decimals."""
    return [
        {
            "name": one.name,
            "value": f"{cents(one.value):f}" if isinstance(one.value, Decimal) else one.value,
            "unit": one.unit,
        }
        for one in found
    ]


def show_calculators(console: Console, found: Sequence[Calculator]) -> None:
    rows: list[list[Cell]] = [[one.name, one.about, _inputs(one)] for one in found]
    show_table(console, ["name", "calculates", "inputs"], [NAME, WORDS, WORDS], rows)


def _inputs(one: Calculator) -> str:
    return " ".join(f"[--{each.name}]" if each.is_optional or each.default else f"--{each.name}" for each in one.inputs)


def _shown(one: Figure) -> str:
    if isinstance(one.value, Decimal):
        return f"{cents(one.value):,.2f}"
    return str(one.value)
