"""Reading the fact files beside this module, whole and checked, or stopping with the entry that is wrong.

The files ship with the product, so a mistake in them is a bug of ours, not of the user: it is reported as file,
entry and what does not hold, at the first use and in every test run.

Rejected: Python modules full of constants. Facts change by other hands than code does, and a table that
cannot run code can be read, compared and replaced by any program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from importlib.resources import files
from typing import TypeVar

import msgspec

from shoal.units.errors import BugError, Where

T = TypeVar("T")


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a fact file. A misspelt field would be a fact lost, so none is ignored."""


def load(file: str, wanted: type[T]) -> T:
    return parse(files("shoal.data").joinpath(file).read_bytes(), file, wanted)


def parse(data: bytes, file: str, wanted: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=wanted)
    except msgspec.DecodeError as error:
        raise wrong(file, "", str(error)) from error


def wrong(file: str, entry: str, what: str) -> BugError:
    return BugError(what, where=Where(file=f"data/{file}", obj=entry))


def require(condition: object, file: str, entry: str, what: str) -> None:
    if not condition:
        raise wrong(file, entry, what)


def require_unique(values: Iterable[Hashable], file: str, what: str) -> None:
    for value, times in Counter(values).items():
        require(times == 1, file, str(value), f"{what} is given {times} times")
