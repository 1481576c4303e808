"""Grows the columns of the cluster by doubling, so that keys can be folded block by block."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

BLOCK_BITS: Final = 4
BLOCK: Final = 1 << BLOCK_BITS
"""Rows whose best key is kept folded into one number: two cache lines of keys, and measured best at 50,000 nodes."""

_LEAST_ROWS: Final = 64

T = TypeVar("T", bound=np.generic)


def capacity_for(rows: int, present: int) -> int:
    """The next capacity that holds `rows`."""
    capacity = max(present, _LEAST_ROWS)
    while capacity < rows:
        capacity *= 2
    return capacity


def grown(array: NDArray[T], rows: int, fill: Any = 0) -> NDArray[T]:
    """The array with its first axis extended to `rows`, new rows filled."""
    if len(array) >= rows:
        return array
    bigger = np.full((rows, *array.shape[1:]), fill, array.dtype)
    bigger[: len(array)] = array
    return bigger


def widened(array: NDArray[T], columns: int) -> NDArray[T]:
    """The array with its second axis extended to `columns`, new columns zero."""
    wider = np.zeros((array.shape[0], columns), array.dtype)
    wider[:, : array.shape[1]] = array
    return wider
