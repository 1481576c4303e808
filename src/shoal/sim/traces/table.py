"""A CSV file as named, checked cells, because a trace comes from outside and may be wrong in every way.

Guarantees: a problem is one `UserError` that names the file, the row as an editor numbers lines (the header is row 1)
and the column; columns are found by name in any order and unknown ones are ignored; a UTF-8 byte order mark and any
line ending are accepted; no file makes the reader hold more than `MAX_FILE_BYTES`.

Rejected: pandas (a large dependency whose parser turns `1_000`, `nan` and `1e4` into numbers without a word) and
`csv.DictReader` (lets a missing column and a short row look the same).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from shoal.api.files import read_whole
from shoal.units.errors import UserError, Where, excerpt

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_ROWS = 1_000_000
_LONGEST_NAME = 253
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)


class TraceRow:
    """One record: its cells by column name, and its line, for messages."""

    __slots__ = ("_cells", "file", "line")

    def __init__(self, file: str, line: int, cells: dict[str, str]) -> None:
        self.file = file
        self.line = line
        self._cells = cells

    def wrong(self, column: str, what: str, fix: str = "") -> UserError:
        return UserError(what, where=Where(file=self.file, row=self.line, path=column), fix=fix)

    def optional(self, column: str) -> str:
        """The cell without surrounding blanks; empty when the file has no such column or the row ends before it."""
        return self._cells.get(column, "").strip()

    def text(self, column: str) -> str:
        if column not in self._cells:
            raise self.wrong(column, "the row ends before this column")
        return self._cells[column].strip()

    def name(self, column: str) -> str:
        text = self.text(column)
        if not text:
            raise self.wrong(column, "is empty")
        if len(text) > _LONGEST_NAME:
            raise self.wrong(column, f"is {len(text)} characters long, the limit is {_LONGEST_NAME}")
        if not text.isprintable():
            raise self.wrong(column, f"{excerpt(text)} holds a control character")
        return text

    def integer(self, column: str, least: int, most: int) -> int:
        text = self.text(column)
        if not text:
            raise self.wrong(column, "is empty", f"write a whole number from {least:,} to {most:,}")
        if not _INTEGER.fullmatch(text):
            raise self.wrong(column, f"{excerpt(text)} is not a whole number")
        # Twenty digits are past any limit here, and int() itself refuses some thousands of them.
        value = int(text) if len(text) <= 20 else (-1 if text.startswith("-") else most + 1)
        if value < 0 and least >= 0:
            raise self.wrong(column, f"{excerpt(text)} is negative")
        if not least <= value <= most:
            raise self.wrong(column, f"{excerpt(text)} is outside {least:,} to {most:,}")
        return value


def read_rows(path: Path, required: Sequence[str | tuple[str, ...]]) -> Iterator[TraceRow]:
    """The rows of the file; a tuple in `required` lists names one column may have, and the first is used for all."""
    file = str(path)
    # strict: an unclosed quote is an error at its row instead of a field that swallows the rest of the file.
    reader = csv.reader(io.StringIO(_load_text(path), newline=""), strict=True)
    header: list[str] | None = None
    count = 0
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            if header is None:
                header = _header(file, start, cells, required)
                continue
            if len(cells) > len(header):
                raise UserError(
                    f"has {len(cells)} cells, the header has {len(header)}",
                    where=Where(file=file, row=start),
                    fix="a text with a comma in it must stand in double quotes",
                )
            count += 1
            if count > MAX_ROWS:
                raise UserError(f"more than {MAX_ROWS:,} rows", where=Where(file=file, row=start))
            yield TraceRow(file, start, dict(zip(header, cells, strict=False)))
    except csv.Error as error:
        raise UserError(f"is not CSV: {error}", where=Where(file=file, row=line)) from error
    if header is None:
        raise UserError("is empty", where=Where(file=file), fix="the first row names the columns")
    if not count:
        raise UserError("has a header but no rows", where=Where(file=file))


def _header(file: str, line: int, cells: list[str], required: Sequence[str | tuple[str, ...]]) -> list[str]:
    names = [cell.strip() for cell in cells]
    where = Where(file=file, row=line)
    for alias in required:
        accepted = (alias,) if isinstance(alias, str) else alias
        present = [name for name in accepted if name in names]
        if not present:
            wanted = " or ".join(f'"{name}"' for name in accepted)
            shown = ", ".join(excerpt(name) for name in names[:8])
            raise UserError(f"column {wanted} is missing", where=where, fix=f"the header has {shown}")
        if len(present) == 1:
            names[names.index(present[0])] = accepted[0]
    for name in names:
        if name and names.count(name) > 1:
            raise UserError(f"column {excerpt(name)} appears twice", where=where)
    return names


def _load_text(path: Path) -> str:
    where = Where(file=str(path))
    data = read_whole(path, MAX_FILE_BYTES)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError("is UTF-16 text", where=where, fix="save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"byte 0x{data[error.start]:02x} is not UTF-8", where=Where(file=str(path), row=row), fix="save it as UTF-8"
        ) from error
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise UserError("holds a NUL byte", where=Where(file=str(path), row=row), fix="save it as plain UTF-8 text")
    return text
