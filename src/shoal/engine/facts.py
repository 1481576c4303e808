"""Defines the record of a node: one row of integers with every quantity that a pod may lack.

"Does the pod fit" is then one comparison of rows against one vector of least amounts, whatever the pod asks for:
cores, memory, pod slots, whole devices, a slice of one device, an extended resource. Device columns are summaries of
the device planes (how many are empty, the largest piece free, the total), exact for the asks that read them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

CPU: Final = 0
MEMORY: Final = 1
PODS: Final = 2
GPU_WHOLE: Final = 3
"""How many `nvidia.com/gpu` one pod can still get: devices with nothing on them, or free replicas of devices."""
GPU_BEST: Final = 4
"""Largest compute piece free on one device, in thousandths."""
GPU_MILLI: Final = 5
"""Compute free on all devices together, in thousandths."""
CPU_SCORED: Final = 6
MEMORY_SCORED: Final = 7
"""As CPU and MEMORY, but a pod that requests nothing counts with kube-scheduler's default value: used by scores only.
"""

FIRST_EXTENDED: Final = 8
"""Columns from here on are resources that some pod asked for by name, eight more at a time.

Nodes report many that no pod requests (huge pages, scratch disk, volume slots): see `unrequested_amounts`.
"""
WORD: Final = 8

NEVER_LACKING: Final = -(1 << 62)
"""The least amount of a resource that a pod did not ask for: an overcommitted node still takes such a pod."""

STAND_IN_CPU_MILLI: Final = 100
STAND_IN_MEMORY_BYTES: Final = 200 * 1024 * 1024

_NAMED: Final = {"cpu": CPU, "memory": MEMORY, "pods": PODS}

_FITS_EIGHT: Final = np.array(0x0101010101010101, np.uint64)


class ResourceColumns:
    """Which column of the record holds which resource."""

    __slots__ = ("_column_of", "names")

    def __init__(self) -> None:
        self._column_of = dict(_NAMED)
        self.names: dict[int, str] = {column: name for name, column in _NAMED.items()}

    @property
    def width(self) -> int:
        """Columns of the record, padded to whole words so that a row of verdicts can be read as one number."""
        used = FIRST_EXTENDED + len(self._column_of) - len(_NAMED)
        return -(-used // WORD) * WORD

    def find(self, resource: str) -> int | None:
        """The resource's column, if it has one."""
        return self._column_of.get(resource)

    def add(self, resource: str) -> int:
        """A column for a resource that has none."""
        column = FIRST_EXTENDED + len(self._column_of) - len(_NAMED)
        self._column_of[resource] = column
        self.names[column] = resource
        return column


def fits(free: NDArray[np.int64], need: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows of `free` hold at least `need`, a vector of whole words that may end before the record does.

    With a line of needs for every row the answer is the same and comes sooner: numpy has nothing to stretch.
    """
    width = need.shape[-1]
    if free.shape[1] != width:
        free = free[:, :width]
    # Eight verdicts compared as one number: a third of the time of `all(axis=1)` on a hundred rows.
    words = np.greater_equal(free, need).view(np.uint64)
    if width == WORD:
        return np.equal(words.ravel(), _FITS_EIGHT)
    folded: NDArray[np.uint64] = np.bitwise_and.reduce(words, axis=1)
    return np.equal(folded, _FITS_EIGHT)
