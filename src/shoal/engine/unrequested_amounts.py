"""Stores amounts of resources that nodes report and no pod has requested yet, which therefore have no column.

Nodes report many resources that no pod requests (huge pages, scratch disk, volume slots). A column for each would
make every comparison longer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from shoal.engine import facts


class UnrequestedAmounts:
    """Amounts by resource and row."""

    __slots__ = ("_by_resource",)

    def __init__(self) -> None:
        self._by_resource: dict[str, dict[int, int]] = {}

    def of(self, row: int) -> dict[str, int | None]:
        """The amount of each resource on a row, None where the node does not report it."""
        return {name: by_row.get(row) for name, by_row in self._by_resource.items()}

    def pop(self, resource: str) -> dict[int, int]:
        """Remove a resource, which now gets a column; returns its amounts by row."""
        return self._by_resource.pop(resource, {})

    def clear(self, row: int) -> None:
        """Forget the amounts of a row."""
        for by_row in self._by_resource.values():
            by_row.pop(row, None)

    def split(
        self, row: int, amounts: Mapping[str, int], columns: facts.ResourceColumns, width: int
    ) -> NDArray[np.int64]:
        """The record of a node that reports these amounts; those without a column are stored here."""
        self.clear(row)
        record = np.zeros(width, np.int64)
        for name, amount in amounts.items():
            column = columns.find(name)
            if column is None:
                self._by_resource.setdefault(name, {})[row] = amount
            else:
                record[column] = amount
        record[facts.CPU_SCORED] = record[facts.CPU]
        record[facts.MEMORY_SCORED] = record[facts.MEMORY]
        return record
