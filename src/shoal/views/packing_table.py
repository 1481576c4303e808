"""Policies side by side in a terminal: what they allocate at each load, what they lose, how long they took.

Fits eighty columns. The best value of a column is marked, ties included, so that readers need not compare digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from shoal.views.palette import shade

_BEST = "bold green"
_SMALLEST = 0.005

Form = Callable[[float], str]
BestOf = Callable[[Iterable[float]], float]


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One policy's line: `alloc` in percent by arrived load, `lost` the percent of the fleet in fragments at last."""

    policy: str
    alloc: Mapping[int, float]
    lost: float
    refused: int
    seconds: float


def packing_table(rows: Sequence[PackedRow], marks: Sequence[int]) -> Table:
    """Columns for the loads some run reached, then fragments, refused pods and time."""
    reached = [mark for mark in marks if any(mark in row.alloc for row in rows)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("allocated at")
    columns = [_marked([row.alloc.get(mark) for row in rows], _decimal, max) for mark in reached]
    columns.append(_marked([row.lost for row in rows], _decimal, min))
    columns.append(_marked([row.refused for row in rows], "{:,}".format, min))
    columns.append(_marked([row.seconds for row in rows], _decimal, min))
    for heading in [*(f"{mark} %" for mark in reached), "frag", "refused", "sec"]:
        table.add_column(heading, justify="right")
    for number, row in enumerate(rows):
        name = Text(row.policy, style=shade(row.policy).dark)
        table.add_row(name, *(column[number] for column in columns))
    return table


def _marked(values: Sequence[float | None], form: Form, best_of: BestOf) -> list[Text]:
    """The column as text; marked only if there are several policies."""
    shown = [form(value) if value is not None else "-" for value in values]
    known = [value for value in values if value is not None]
    best = form(best_of(known)) if known else ""
    contested = len(set(shown)) > 1
    return [Text(text, style=_BEST if contested and text == best else "") for text in shown]


def _decimal(value: float) -> str:
    """Two decimals, one for a hundred and more: the column stays five wide. Never -0.00."""
    value = 0.0 if abs(value) < _SMALLEST else value
    return f"{value:.2f}" if value < 99.995 else f"{value:.1f}"
