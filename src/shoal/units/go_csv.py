"""Reads comma-separated values by the rules of Go's `encoding/csv`, with its messages.

Go's reader is stricter than Python's: a quote inside an unquoted field is an error, and so is a record with another
number of fields than the first one. A line that starts with the comment character, and an empty line, are left out. A
space is part of a field.
"""

from __future__ import annotations

_QUOTE, _COMMA = '"', ","


class CsvError(ValueError):
    """The message is Go's."""


def records(text: str, comment: str = "#") -> list[list[str]]:
    """All records; raises `CsvError` at the first one that is wrong."""
    lines = _lines(text)
    found: list[list[str]] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if line in ("", "\n") or line.startswith(comment):
            continue
        start = number
        fields, number = _record(lines, number)
        if found and len(fields) != len(found[0]):
            raise CsvError(f"record on line {start}: wrong number of fields")
        found.append(fields)
    return found


def _lines(text: str) -> list[str]:
    """With their line ends, which are a line feed; the last line may have none."""
    whole = text.replace("\r\n", "\n").removesuffix("\r")
    parts = whole.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _record(lines: list[str], number: int) -> tuple[list[str], int]:
    """The fields of the record that begins in line `number`, counted from 1, and the number of its last line."""
    start, line, position = number, lines[number - 1], 0
    fields: list[str] = []
    while True:
        if not line.startswith(_QUOTE, position):
            end = line.find(_COMMA, position)
            field = line[position:end] if end >= 0 else line[position:].removesuffix("\n")
            if _QUOTE in field:
                raise _error(start, number, line, position + field.index(_QUOTE), 'bare " in non-quoted field')
            fields.append(field)
            if end < 0:
                return fields, number
            position = end + 1
            continue
        position += 1
        parts: list[str] = []
        while True:
            end = line.find(_QUOTE, position)
            if end < 0:
                parts.append(line[position:])
                if number == len(lines):
                    column = len(line.removesuffix("\n"))
                    raise _error(start, number, line, column, 'extraneous or missing " in quoted-field')
                line, position, number = lines[number], 0, number + 1
                continue
            parts.append(line[position:end])
            position = end + 1
            following = line[position : position + 1]
            if following == _QUOTE:
                parts.append(_QUOTE)
                position += 1
            elif following == _COMMA:
                fields.append("".join(parts))
                position += 1
                break
            elif following in ("", "\n"):
                fields.append("".join(parts))
                return fields, number
            else:
                raise _error(start, number, line, end, 'extraneous or missing " in quoted-field')


def _error(start: int, number: int, line: str, position: int, words: str) -> CsvError:
    """Columns are counted in bytes."""
    column = len(line[:position].encode(errors="replace")) + 1
    place = f"parse error on line {number}, column {column}: {words}"
    return CsvError(place if start == number else f"record on line {start}; {place}")
