"""Writes lists as kubectl does: a table, names, JSON, YAML, a JSONPath template, or columns of one's own.

Guarantees: a format is checked before any work; the JSON of a list is one object of the kind List with `items`, so that
paths start at `.items` as with kubectl; the JSON of one named object is the object.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.cli.known_names import check_known
from shoal.cli.row_documents import Objects, documents_of_rows
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.cli.listed_types import ListedType

_PLAIN = ("table", "wide", "name", "json", "yaml")
_JSONPATH, _COLUMNS = "jsonpath", "custom-columns"
_FORMATS = (*_PLAIN, f"{_JSONPATH}=", f"{_COLUMNS}=")
_GAP = 3
_NONE = "<none>"


@dataclass(frozen=True)
class OutputForm:
    """A format of `-o`, and how rows are ordered."""

    name: str
    argument: str = ""
    sort_by: str = ""
    has_headings: bool = True

    @property
    def is_table(self) -> bool:
        return self.name in ("table", "wide", _COLUMNS)


@dataclass(frozen=True)
class Listing:
    """The rows of a type that the command line asks for."""

    of: ListedType
    rows: Sequence[Any]
    cluster: str = ""
    is_one: bool = False
    """Whether a single name was given."""
    objects: Objects = field(default_factory=dict)


def form_of(output: str, sort_by: str = "", *, has_headings: bool = True) -> OutputForm:
    """Raises UserError for an unknown format and for a path that cannot be read."""
    from shoal.api.jsonpath import PathError
    from shoal.api.jsonpath_template import Template, path_of

    name, _, argument = output.partition("=")
    where = Where(path="--output")
    if name not in (_JSONPATH, _COLUMNS) or not argument:
        check_known(output, _FORMATS if output != _JSONPATH else _PLAIN, "format", where)
    try:
        if name == _JSONPATH:
            Template(argument)
        if name == _COLUMNS:
            _columns(argument)
        where = Where(path="--sort-by")
        order = path_of(sort_by) if sort_by else ""
    except PathError as error:
        raise UserError(
            f"{excerpt(sort_by if where.path == '--sort-by' else argument)}: {error}", where=where
        ) from None
    return OutputForm(name, argument, order, has_headings)


def summary_form(output: str, command: str, listed: str, sort_by: str = "") -> OutputForm:
    """The format of a command that prints several tables. Raises UserError as `form_of`, and for columns."""
    form = form_of(output, sort_by)
    if form.name == _COLUMNS:
        fix = f"use `shoal get {listed} -o {_COLUMNS}=...`"
        raise UserError(f"{command} prints several tables", where=Where(path="--output"), fix=fix)
    return form


def write_listing(listing: Listing, form: OutputForm) -> None:
    if form.name in ("table", "wide"):
        sys.stdout.write(_table(listing, form))
    elif form.name == _COLUMNS:
        sys.stdout.write("".join(f"{line}\n" for line in column_lines(listing, form)))
    elif form.name == "name":
        sys.stdout.write("".join(f"{name_of(listing.of, row)}\n" for row in listing.rows))
    else:
        from shoal.api.jsonpath_template import Template

        paths = list(Template(form.argument).paths()) if form.name == _JSONPATH else []
        write_document(document_of(listing, paths), form)


def write_document(document: Any, form: OutputForm) -> None:
    from shoal.api.jsonpath_template import Template
    from shoal.cli.formats import write

    if form.name == _JSONPATH:
        sys.stdout.write(Template(form.argument).render(document))
    else:
        write(document, form.name)


def document_of(listing: Listing, paths: Sequence[str] = ()) -> Any:
    """`paths`: those that a template reads."""
    items = documents_of_rows(listing.of, listing.rows, listing.objects, paths, "--output")
    if listing.is_one and len(items) == 1:
        return items[0]
    head = {"apiVersion": "v1", "kind": "List"}
    return head | ({"cluster": listing.cluster} if listing.cluster else {}) | {"items": items}


def name_of(of: ListedType, row: Any) -> str:
    """As kubectl writes it, `pod/x`; with the namespace where there is one: `pod/team-a/x`."""
    return f"{of.singular}/{of.key(row)}"


def line_of_rows(listing: Listing, form: OutputForm) -> tuple[str, list[str]]:
    """The heading, and the line of each row, however long it is."""
    import io

    from shoal.views.text_console import TextConsole

    if form.name == _COLUMNS:
        heading, *lines = column_lines(listing, OutputForm(form.name, form.argument))
        return heading, lines
    screen = TextConsole(file=io.StringIO(), width=_WIDEST, highlight=False, color_system=None)
    listing.of.draw(screen, listing.rows, form.name == "wide", None)
    written = screen.file.getvalue() if isinstance(screen.file, io.StringIO) else ""
    heading, *lines = [line.rstrip() for line in written.splitlines() if line.strip()] or [""]
    return heading, lines


_WIDEST = 4000


def column_lines(listing: Listing, form: OutputForm) -> list[str]:
    """The columns of `-o custom-columns=`, as wide as their cells."""
    from shoal.api.jsonpath import find
    from shoal.api.jsonpath_template import text_of

    columns = _columns(form.argument)
    paths = [path for _, path in columns]
    documents = documents_of_rows(listing.of, listing.rows, listing.objects, paths, "--output")
    table = [[heading for heading, _ in columns]] if form.has_headings else []
    table += [[visible(",".join(map(text_of, find(path, one)))) or _NONE for _, path in columns] for one in documents]
    widths = [max((len(row[at]) for row in table), default=0) + _GAP for at in range(len(columns))]
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _table(listing: Listing, form: OutputForm) -> str:
    from shoal.cli.formats import console

    screen = console()
    with screen.capture() as captured:
        listing.of.draw(screen, listing.rows, form.name == "wide", _MOST_ROWS)
    lines = captured.get().strip("\n").split("\n")
    # Blanks fill the last column, which only matters to programs that compare lines.
    kept = lines if form.has_headings else lines[1:]
    return "".join(f"{line.rstrip()}\n" for line in kept)


_MOST_ROWS = 40


def _columns(argument: str) -> list[tuple[str, str]]:
    from shoal.api.jsonpath import PathError
    from shoal.api.jsonpath_template import path_of

    found = []
    for part in argument.split(","):
        heading, colon, path = part.partition(":")
        if not heading or not colon or not path:
            raise PathError(f"{part!r} is not HEADING:PATH")
        found.append((heading, path_of(path)))
    return found
