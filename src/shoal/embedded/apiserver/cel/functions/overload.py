"""Parses one row of a function table: `string.find(string) string`, `ip(string) ip`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec


class Overload(msgspec.Struct, frozen=True):
    takes: tuple[str, ...]
    """Kinds of the arguments, the object of a method first."""
    result: str
    is_member: bool
    does: Callable[..., Any]


Table = tuple[tuple[str, Overload], ...]
_FORM = re.compile(r"(?:(?P<on>\w+)!)?(?P<name>[\w.@?\-+*/%<>=\[\]]+)\((?P<takes>[\w, ]*)\) (?P<result>\w+)")


def row(written: str, does: Callable[..., Any]) -> tuple[str, Overload]:
    """A row; methods are written `kind!name(...)`."""
    found = _FORM.fullmatch(written)
    if found is None:
        raise ValueError(written)
    takes = tuple(one.strip() for one in found["takes"].split(",") if one.strip())
    on = found["on"]
    return found["name"], Overload((on, *takes) if on else takes, found["result"], bool(on), does)
