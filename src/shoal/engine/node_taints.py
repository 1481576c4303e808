"""Stores the taints of nodes: equal sets of taints once, and one column with the code of each node's set.

Nodes have few different sets of taints, so a filter or score judges each set once and looks up its verdict by code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.api.taints import Taint
from shoal.engine.growth import grown


class NodeTaints:
    """Sets of taints and the code of each row's set; code 0 is the empty set."""

    __slots__ = ("_code_of", "code", "sets")

    def __init__(self) -> None:
        self.sets: list[tuple[Taint, ...]] = [()]
        """Sets of taints by code."""
        self.code: NDArray[np.int32] = np.zeros(0, np.int32)
        """The code of each row's set."""
        self._code_of: dict[tuple[Taint, ...], int] = {(): 0}

    def put(self, row: int, taints: tuple[Taint, ...]) -> None:
        """Set the taints of a row."""
        code = self._code_of.get(taints)
        if code is None:
            code = len(self.sets)
            self.sets.append(taints)
            self._code_of[taints] = code
        self.code[row] = code

    def of(self, row: int) -> tuple[Taint, ...]:
        """The taints of a row."""
        return self.sets[self.code.item(row)]

    def grow(self, rows: int) -> None:
        """Extend the column to `rows`."""
        self.code = grown(self.code, rows)
