"""A table of the dashboard: as many rows as fit, with the row under the cursor always among them.

Columns are as wide as their widest cell, up to a limit; the last one takes what is left. Rejected: rich's Table. It
measures and wraps every cell, which took ten times as long for a screen of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.text import Text

T = TypeVar("T")
_GAP = 2
_CURSOR, _NO_CURSOR = "> ", "  "


class Column(msgspec.Struct, frozen=True):
    heading: str
    most: int = 40
    is_number: bool = False


class Row(msgspec.Struct, frozen=True):
    key: str
    cells: Sequence[tuple[str, str]]
    """Text and style of each column."""


class Rows(Generic[T]):
    """Rows that are made when they are drawn: of thousands a terminal shows a few."""

    def __init__(self, items: Sequence[T], key: Callable[[T], str], make: Callable[[T], Row]) -> None:
        self._items, self._key, self._make = items, key, make

    def __len__(self) -> int:
        return len(self._items)

    def find(self, key: str) -> int:
        """The position of the row with this key; 0 if there is none."""
        return next((number for number, item in enumerate(self._items) if self._key(item) == key), 0)

    def part(self, first: int, count: int) -> list[Row]:
        return [self._make(item) for item in self._items[first : first + count]]


def draw_table(
    columns: Sequence[Column],
    rows: Sequence[Row] | Rows[T],
    size: tuple[int, int],
    selected: str = "",
    *,
    is_counted: bool = True,
) -> list[Text]:
    """A heading and the rows that fit. `is_counted`: where there are more, the last line says how many."""
    width, height = size
    if height <= 0:
        return []
    room = height - 1
    lazy: Rows[Any] = rows if isinstance(rows, Rows) else Rows(rows, lambda row: row.key, lambda row: row)
    at = lazy.find(selected) if selected else 0
    has_more = is_counted and len(rows) > room
    visible = max(0, room - has_more)
    first = min(max(0, at - visible // 2), max(0, len(rows) - visible))
    shown = lazy.part(first, visible)
    widths = [
        min(column.most, max([cell_len(column.heading), *(cell_len(row.cells[number][0]) for row in shown)]))
        for number, column in enumerate(columns)
    ]
    marks = bool(selected)
    lines = [_line([(column.heading, "dim") for column in columns], columns, widths, _NO_CURSOR if marks else "")]
    for row in shown:
        is_selected = marks and row.key == selected
        line = _line(row.cells, columns, widths, (_CURSOR if is_selected else _NO_CURSOR) if marks else "")
        if is_selected:
            line.stylize("reverse")
        lines.append(line)
    if has_more and room:
        below = len(rows) - first - len(shown)
        lines.append(Text(f"{first:,} above, {below:,} below" if first else f"{below:,} more", style="dim"))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _line(cells: Sequence[tuple[str, str]], columns: Sequence[Column], widths: Sequence[int], mark: str) -> Text:
    line = Text(mark, style="default")
    last = len(columns) - 1
    for number, ((text, style), column, width) in enumerate(zip(cells, columns, widths, strict=True)):
        if number == last and not column.is_number:
            line.append(text, style=style or None)
            continue
        cell = text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"
        pad = " " * (width - cell_len(cell))
        line.append(pad + cell if column.is_number else cell + pad, style=style or None)
        if number != last:
            line.append(" " * _GAP)
    return line
