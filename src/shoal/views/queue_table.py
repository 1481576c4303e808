"""Tables in which every number is whole, however narrow the screen is.

Left to itself, rich cuts cells off where columns do not fit, and a number cut off is another number. So widths are
settled here: columns of numbers get what they need, the others share what is left, the widest giving way first, and
their text goes on in the next line. Where even that is not enough, columns that can be spared are left out, and that is
said; where none can, the table is wider than the screen, which a terminal folds and a pipe does not mind.

Rejected: an ellipsis in names. Two queues may differ in their last letters alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.units.visible_text import visible
from shoal.views.text_console import visible_text

Cell = Text | str
NAME, KIND, WORDS = 16, 10, 22
"""How wide a column stays at least, where its cells are not shorter; words are broken only where they are longer."""
NUMBER = 0
"""A column that is never narrower than its cells."""
_GAP = 2


def show_table(
    console: Console,
    headings: Sequence[str],
    leasts: Sequence[int],
    rows: Sequence[Sequence[Cell]],
    spare: Sequence[str] = (),
) -> None:
    """`leasts`: for each column one of the constants. `spare`: columns that can be left out, the first to go first."""
    left_out = []
    columns = list(zip(headings, *(map(_shown, row) for row in rows), strict=True))
    for heading in (each for each in spare if each in headings):
        if _least_width(columns, leasts) <= console.width:
            break
        kept = [at for at, column in enumerate(columns) if column[0] != heading]
        columns, leasts = [columns[at] for at in kept], [leasts[at] for at in kept]
        left_out.append(heading)
    _show(console, columns, leasts)
    if left_out:
        console.print(Text(f"no room for: {', '.join(reversed(left_out))}", "dim"))


def _show(console: Console, columns: Sequence[Sequence[Cell]], leasts: Sequence[int]) -> None:
    widths = _widths(columns, leasts, console.width - _GAP * (len(columns) - 1))
    total = sum(widths) + _GAP * (len(widths) - 1)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim", width=total)
    table.show_header = getattr(console, "has_headings", True)
    for column, width, least in zip(columns, widths, leasts, strict=True):
        is_number = least == NUMBER
        table.add_column(
            str(column[0]), width=width, no_wrap=is_number, overflow="fold", justify="right" if is_number else "left"
        )
    for row in zip(*(column[1:] for column in columns), strict=True):
        # Text in brackets comes from annotations of users and is not markup.
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    console.print(table, crop=False)


def _shown(cell: Cell) -> Cell:
    """As it is printed, so that its width is right."""
    return visible_text(cell) if isinstance(cell, Text) else visible(cell)


def _least_width(columns: Sequence[Sequence[Cell]], leasts: Sequence[int]) -> int:
    return sum(_floors(columns, leasts)) + _GAP * (len(columns) - 1)


def _floors(columns: Sequence[Sequence[Cell]], leasts: Sequence[int]) -> list[int]:
    return [min(max(map(_width, column)), _floor(column, least)) for column, least in zip(columns, leasts, strict=True)]


def _widths(columns: Sequence[Sequence[Cell]], leasts: Sequence[int], limit: int) -> list[int]:
    widths = [max(map(_width, column)) for column in columns]
    floors = _floors(columns, leasts)
    while sum(widths) > limit:
        room = [index for index, width in enumerate(widths) if width > floors[index]]
        if not room:
            break
        widest = max(room, key=lambda index: widths[index])
        widths[widest] -= 1
    return widths


def _floor(column: Sequence[Cell], least: int) -> int:
    if least == NUMBER:
        return max(map(_width, column))
    return min(least, _longest_word(column)) if least == WORDS else least


def _width(cell: Cell) -> int:
    return cell.cell_len if isinstance(cell, Text) else cell_len(cell)


def _longest_word(cells: Iterable[Cell]) -> int:
    return max((cell_len(word) for cell in cells for word in str(cell).split()), default=0)
