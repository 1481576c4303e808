"""Stores node labels as columns: per key one array of small integers, so that a selector is one table lookup for all
nodes.

Fifty thousand nodes share few values per key; keeping dictionaries per node would cost more memory than everything
else together and force a Python loop on every new shape.

Nodes come and go for years, and some values (host names) with them. Whatever is counted by value is as long as the
list of values, so values that no node has any more are forgotten once they are the most part: the others get new
codes, and the column a new epoch. Rejected: giving a forgotten value's code to the next that comes. Codes would mean
something else every time a node is replaced, and every reader would have to look each time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from shoal.api.requirement import Requirement, as_int64
from shoal.engine.growth import grown

ABSENT = 0
"""The code of a node that lacks the key; values are numbered from 1."""

LEAST_VALUES = 1024
"""Shorter lists of values are not cleaned up."""


class LabelColumn:
    """One key: the code of every node's value and the values by code."""

    __slots__ = ("_code_of", "codes", "epoch", "values")

    def __init__(self, rows: int) -> None:
        self.codes: NDArray[np.int32] = np.zeros(rows, np.int32)
        self.values: list[str] = [""]
        """Values are only added while the epoch does not change."""
        self.epoch = 0
        """Grows when codes come to mean other values: what was derived from codes before is worth nothing."""
        self._code_of: dict[str, int] = {}

    def code(self, value: str) -> int:
        """The code of a value, or ABSENT when no node ever had it."""
        return self._code_of.get(value, ABSENT)

    def put(self, row: int, value: str) -> None:
        code = self._code_of.get(value)
        if code is None:
            code = len(self.values)
            self.values.append(value)
            self._code_of[value] = code
        self.codes[row] = code

    def renumber(self) -> None:
        """Forget the values that no row has; the others keep their order."""
        used = np.unique(self.codes)
        used = used[used != ABSENT]
        code_now = np.zeros(len(self.values), np.int32)
        code_now[used] = np.arange(1, len(used) + 1)
        self.codes = code_now.take(self.codes)
        self.values = ["", *(self.values[code] for code in used.tolist())]
        self._code_of = {value: code for code, value in enumerate(self.values[1:], start=1)}
        self.epoch += 1

    def accepted(self, requirement: Requirement) -> NDArray[np.bool_]:
        """For every code, ABSENT included, whether a node with it satisfies the requirement."""
        accepted = np.zeros(len(self.values), np.bool_)
        match requirement.operator:
            case "In":
                for value in requirement.values:
                    if (code := self.code(value)) != ABSENT:
                        accepted[code] = True
            case "NotIn":
                accepted[:] = True
                for value in requirement.values:
                    if (code := self.code(value)) != ABSENT:
                        accepted[code] = False
            case "Exists":
                accepted[1:] = True
            case "DoesNotExist":
                accepted[ABSENT] = True
            case "Gt" | "Lt":
                bound = int(requirement.values[0])
                for code, value in enumerate(self.values[1:], start=1):
                    number = as_int64(value)
                    if number is not None:
                        greater = requirement.operator == "Gt"
                        accepted[code] = number > bound if greater else number < bound
        return accepted


class Labels:
    """All label columns of a cluster."""

    __slots__ = ("_columns", "_least_values", "_rows")

    def __init__(self, least_values: int = LEAST_VALUES) -> None:
        self._least_values = least_values
        self._columns: dict[str, LabelColumn] = {}
        self._rows = 0

    def grow(self, rows: int) -> None:
        self._rows = rows
        for column in self._columns.values():
            column.codes = grown(column.codes, rows)

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        """Replace the labels of a row."""
        for key, column in self._columns.items():
            if key not in labels:
                column.codes[row] = ABSENT
        for key, value in labels.items():
            self.column(key).put(row, value)

    def forget_unused(self, nodes: int) -> None:
        """Renumber the columns that have more than twice as many values as there are nodes to have them."""
        most = max(2 * nodes, self._least_values)
        for column in self._columns.values():
            if len(column.values) > most:
                column.renumber()

    def column(self, key: str) -> LabelColumn:
        """The column of a key, made on first sight."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(self._rows)
        return column

    def keys(self) -> list[str]:
        """Every key that some node has or had, or that was requested."""
        return list(self._columns)

    def get(self, row: int, key: str) -> str | None:
        column = self._columns.get(key)
        if column is None or column.codes[row] == ABSENT:
            return None
        return column.values[int(column.codes[row])]

    def of(self, row: int) -> dict[str, str]:
        return {key: column.values[code] for key, column in self._columns.items() if (code := int(column.codes[row]))}

    def satisfies(self, requirement: Requirement, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the rows satisfy the requirement."""
        column = self._columns.get(requirement.key)
        if column is None:
            passes = requirement.operator in ("NotIn", "DoesNotExist")
            return np.full(len(rows), passes, np.bool_)
        return column.accepted(requirement).take(column.codes.take(rows))
