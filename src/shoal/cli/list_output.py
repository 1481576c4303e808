"""Writes lists as kubectl does: a table, names, JSON, YAML, a JSONPath template, or columns of one's own.

Guarantees: a format is checked before any work; the JSON of a list is one object with `items`, so that paths start at
`.items` as with kubectl; the JSON of one named object is the object; every row has the name of its object at
`metadata`, where kubectl's paths look for it. A field that rows do not have is an error with the fields that they have:
a misspelled name must not look like an empty value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.cli.known_names import check_known
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


def summary_form(output: str, command: str, listed: str) -> OutputForm:
    """The format of a command that prints several tables. Raises UserError as `form_of`, and for columns."""
    form = form_of(output)
    if form.name == _COLUMNS:
        fix = f"use `shoal get {listed} -o {_COLUMNS}=...`"
        raise UserError(f"{command} prints several tables", where=Where(path="--output"), fix=fix)
    return form


def sorted_by(path: str, of: ListedType, rows: Sequence[Any]) -> list[Any]:
    """Rows without the field come first, as with kubectl; numbers are compared as numbers."""
    from shoal.api.jsonpath import find

    def order(row: dict[str, Any]) -> tuple[int, float, str]:
        found = find(path, row)
        if not found:
            return 0, 0.0, ""
        is_number = isinstance(found[0], int | float)
        return (1, float(found[0]), "") if is_number else (2, 0.0, str(found[0]))

    documents = [document_of_row(of, row) for row in rows]
    _check_paths([path], documents, "--sort-by")
    ranked = sorted(range(len(rows)), key=lambda at: order(documents[at]))
    return [rows[at] for at in ranked]


def write_listing(listing: Listing, form: OutputForm) -> None:
    if form.name in ("table", "wide"):
        sys.stdout.write(_table(listing, form))
    elif form.name == _COLUMNS:
        sys.stdout.write("".join(f"{line}\n" for line in column_lines(listing, form)))
    elif form.name == "name":
        sys.stdout.write("".join(f"{name_of(listing.of, row)}\n" for row in listing.rows))
    else:
        from shoal.api.jsonpath_template import Template

        document = document_of(listing)
        if form.name == _JSONPATH:
            rows = [document_of_row(listing.of, row) for row in listing.rows]
            _check_paths(Template(form.argument).paths(), rows, "--output")
        write_document(document, form)


def write_document(document: Any, form: OutputForm) -> None:
    from shoal.api.jsonpath_template import Template
    from shoal.cli.formats import write

    if form.name == _JSONPATH:
        sys.stdout.write(Template(form.argument).render(document))
    else:
        write(document, form.name)


def document_of(listing: Listing) -> Any:
    items = [document_of_row(listing.of, row) for row in listing.rows]
    if listing.is_one and len(items) == 1:
        return items[0]
    return ({"cluster": listing.cluster} if listing.cluster else {}) | {"items": items}


def document_of_row(of: ListedType, row: Any) -> dict[str, Any]:
    """The row with the name of its object where kubectl has it."""
    import msgspec

    namespace, slash, name = of.key(row).rpartition("/")
    return {"metadata": {"name": name} | ({"namespace": namespace} if slash else {}), **msgspec.to_builtins(row)}


def _check_paths(paths: Iterable[str], rows: Sequence[dict[str, Any]], option: str) -> None:
    """Raises UserError for a field that rows do not have. What is below a field may be missing: a MIG profile."""
    known = {name for row in rows for name in row}
    for path in paths if rows else ():
        plain = _without_filters(path).lstrip("$@")
        names = _NAMES.findall(plain.removeprefix(".items"))
        is_unknown = names and names[0] not in known | {"items", "cluster"}
        is_unknown = is_unknown or (names[:1] == ["metadata"] and len(names) > 1 and names[1] not in _METADATA)
        if is_unknown and ".." not in plain:
            fields = [*(f"metadata.{name}" for name in _METADATA), *(name for name in rows[0] if name != "metadata")]
            fix = f"each item has {', '.join(fields)}"
            raise UserError(f"{excerpt(path)} is no field of the items", where=Where(path=option), fix=fix)


_METADATA = ("name", "namespace")
_NAMES = re.compile(r"[^.\[\]'\"]+")


def _without_filters(path: str) -> str:
    """The path without brackets, except those around a quoted name: `['metadata']`."""
    kept: list[str] = []
    depth = 0
    is_name = False
    for at, letter in enumerate(path):
        if letter == "[":
            depth += 1
            is_name = depth == 1 and path[at + 1 : at + 2] in ("'", '"')
        if not depth or is_name:
            kept.append(letter)
        if letter == "]" and depth:
            depth -= 1
    return "".join(kept)


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
    documents = [document_of_row(listing.of, row) for row in listing.rows]
    _check_paths([path for _, path in columns], documents, "--output")
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
