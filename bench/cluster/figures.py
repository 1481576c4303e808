"""A figure beside its bar, and beside what the same machine did in the same run with less to do."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.table import Table


class Figure(msgspec.Struct, frozen=True):
    title: str
    measured: float
    unit: str = ""
    least: float | None = None
    most: float | None = None
    beside: str = ""
    """What it compares with, in words."""

    @property
    def has_bar(self) -> bool:
        return self.least is not None or self.most is not None

    @property
    def is_met(self) -> bool:
        return (self.least is None or self.measured >= self.least) and (self.most is None or self.measured <= self.most)


def table(figures: Sequence[Figure]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="dim")
    made.add_column("figure")
    for heading in ("measured", "bar"):
        made.add_column(heading, justify="right")
    made.add_column("")
    made.add_column("beside it")
    for figure in figures:
        verdict = ("[green]met[/]" if figure.is_met else "[red]missed[/]") if figure.has_bar else ""
        made.add_row(figure.title, f"{_number(figure.measured)}{figure.unit}", _bar(figure), verdict, figure.beside)
    return made


def _bar(figure: Figure) -> str:
    if figure.least is not None:
        return f">= {figure.least:,g}{figure.unit}"
    return "" if figure.most is None else f"<= {figure.most:,g}{figure.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
