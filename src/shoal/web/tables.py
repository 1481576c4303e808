"""Writes a table as HTML and as CSV, with the `shoal` command that prints it.

Guarantees: both have the same rows, and the CSV has all of them. A cell that a spreadsheet would run as a formula is
quoted.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from shoal.web.markup import Markup, element, joined

MOST_ROWS = 500
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the same signs in full width."""


class TableCell(msgspec.Struct, frozen=True):
    text: str
    href: str = ""
    style: str = ""
    """A class of the style sheet."""
    drawing: Markup | None = None
    """What is drawn instead of the text."""


class Heading(msgspec.Struct, frozen=True):
    text: str
    is_number: bool = False


class DataTable(msgspec.Struct, frozen=True):
    key: str
    """The name of the table on its page."""
    title: str
    command: str
    """What prints it in a terminal."""
    headings: Sequence[Heading]
    rows: Sequence[Sequence[TableCell]]
    empty: str
    """The sentence that is shown instead of a table without rows."""


def csv_of(table: DataTable) -> str:
    output = io.StringIO()
    # Spreadsheets of some languages part columns at semicolons that are outside of quotes.
    writer = csv.writer(output, quoting=csv.QUOTE_ALL)
    writer.writerow([heading.text for heading in table.headings])
    writer.writerows([_plain(cell.text) for cell in row] for row in table.rows)
    return output.getvalue()


def table_markup(table: DataTable, path: str) -> Markup:
    """`path`: the address of its page."""
    count = f"{len(table.rows):,}" if table.rows else ""
    heading = element("h2", table.title, " ", element("span", count, class_="count"))
    bar = element("div", heading, copies(table, path), class_="table-bar")
    if not table.rows:
        return joined((bar, element("p", table.empty, class_="empty")))
    head = element("tr", *(element("th", each.text, scope="col", class_=_kind(each)) for each in table.headings))
    rows = (_row(table, row) for row in table.rows[:MOST_ROWS])
    more = len(table.rows) - MOST_ROWS
    note = f"and {more:,} more; the CSV has all of them" if more > 0 else ""
    body = element("table", element("thead", head), element("tbody", *rows), aria_label=table.title)
    # Wide tables scroll, by keys as well.
    scrolled = element("div", body, class_="scrolled", tabindex=0, role="region", aria_label=table.title)
    return joined((bar, scrolled, element("p", note, class_="empty") if note else None))


def copies(table: DataTable, path: str) -> Markup:
    """The command, and the ways to take the table away."""
    href = f"{path}{'&' if '?' in path else '?'}csv={table.key}"
    return element(
        "div",
        element("code", table.command),
        element("button", "copy command", type="button", data_copy=table.command),
        element("button", "copy CSV", type="button", data_copy_csv=href),
        element("a", "CSV", href=href, download=f"{table.key}.csv", aria_label=f"{table.title} as a CSV file"),
        class_="copies",
    )


def _row(table: DataTable, row: Sequence[TableCell]) -> Markup:
    return element("tr", *(_cell(heading, cell) for heading, cell in zip(table.headings, row, strict=True)))


def _cell(heading: Heading, cell: TableCell) -> Markup:
    shown = cell.drawing if cell.drawing is not None else cell.text
    styles = " ".join(style for style in (_kind(heading), cell.style) if style)
    return element("td", element("a", shown, href=cell.href) if cell.href else shown, class_=styles or None)


def _kind(heading: Heading) -> str | None:
    return "number" if heading.is_number else None


def _plain(text: str) -> str:
    """Without what spreadsheets take for a formula; a number stays a number."""
    if not text.startswith(("\t", "\r")) and not text.lstrip().startswith(_FORMULA):
        return text
    return text if text[1:].replace(".", "", 1).isdecimal() else f"'{text}"
