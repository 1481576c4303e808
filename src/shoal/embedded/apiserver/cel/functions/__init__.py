"""Lists the libraries of functions that expressions may call, by name."""

from __future__ import annotations

from shoal.embedded.apiserver.cel.functions import (
    addresses,
    authorization,
    collections,
    formats,
    numbers,
    quantities,
    regexes,
    semvers,
    standard,
    texts,
    times,
    urls,
)
from shoal.embedded.apiserver.cel.functions.overload import Overload, Table

_LIBRARIES: tuple[Table, ...] = (
    standard.TABLE,
    numbers.TABLE,
    texts.TABLE,
    times.TABLE,
    collections.TABLE,
    regexes.TABLE,
    quantities.TABLE,
    urls.TABLE,
    addresses.TABLE,
    semvers.TABLE,
    formats.TABLE,
    authorization.TABLE,
)


def _by_name() -> dict[str, tuple[Overload, ...]]:
    found: dict[str, list[Overload]] = {}
    for library in _LIBRARIES:
        for name, overload in library:
            found.setdefault(name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


FUNCTIONS = _by_name()

__all__ = ["FUNCTIONS", "Overload"]
