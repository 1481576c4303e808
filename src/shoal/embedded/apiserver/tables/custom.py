"""The rows of custom resources: the name, then the columns their definition asks for.

A cell whose path leads nowhere, or to a value of another type than the column says, is empty. Without columns of its
own a resource shows its age.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from shoal.api.jsonpath import PathError, find, steps
from shoal.embedded.apiserver.resource import Column
from shoal.embedded.apiserver.tables.ages import instant_s, since
from shoal.embedded.apiserver.tables.printer import DESCRIPTIONS, Obj, Printer, TableColumn, name

_AGE = Column("Age", "date", ".metadata.creationTimestamp", description=DESCRIPTIONS["Age"])
_NAME = TableColumn("Name", "string", "name", DESCRIPTIONS["Name"], 0)
_TEXT = msgspec.json.Encoder(order="sorted")


@lru_cache(maxsize=256)
def printer(columns: tuple[Column, ...]) -> Printer:
    shown = columns or (_AGE,)
    heads = tuple(TableColumn(one.name, one.type, one.format, one.description, one.priority) for one in shown)
    readers = [_reader(one) for one in shown]

    def cells(obj: Obj, now_s: int) -> list[Any]:
        return [name(obj), *(read(obj, now_s) for read in readers)]

    return Printer((_NAME, *heads), cells)


def _reader(column: Column) -> Callable[[Obj, int], Any]:
    path, kind = column.json_path, column.type
    try:
        steps(path)
    except PathError:
        return lambda _obj, _now_s: None

    def read(obj: Obj, now_s: int) -> Any:
        found = find(path, obj)
        return _cell(kind, found[0], now_s) if found else None

    return read


def _cell(kind: str, value: Any, now_s: int) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string":
        return _text(value)
    if kind == "integer":
        return int(value) if is_number else None
    if kind == "number":
        return value if is_number else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date" and isinstance(value, str):
        return since(value, now_s) if not value or instant_s(value) is not None else "<invalid>"
    return None


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return None if value is None else _TEXT.encode(value).decode()
