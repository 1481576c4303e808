"""Which rows changed, in order: one log, and a cursor for everyone who caches something derived from the rows.

A reader that comes back after a while asks for the rows since its cursor and recomputes only those. One that stayed
away too long is told so and recomputes everything, which by then is the cheaper thing to do; so the log never grows
beyond a small multiple of the cluster. Rejected: a dirty flag per row and reader (every change would pay for every
reader), and callbacks (order of registration would become behaviour).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LEAST = 8192


class ChangeLog:
    """An append-only sequence of row numbers of which only the newest part is kept."""

    __slots__ = ("_buffer", "_length", "_offset", "end")

    def __init__(self) -> None:
        self._buffer: NDArray[np.int64] = np.zeros(2 * _LEAST, np.int64)
        self._length = 0
        self._offset = 0
        self.end = 0
        """The cursor of a reader that has seen everything; also the version of the facts behind the log."""

    def append(self, row: int) -> None:
        if self._length == len(self._buffer):
            self._forget_half()
        self._buffer[self._length] = row
        self._length += 1
        self.end += 1

    def since(self, cursor: int) -> NDArray[np.int64] | None:
        """Rows changed since `cursor`, oldest first, repeats included; None when that is no longer known."""
        start = cursor - self._offset
        if start < 0:
            return None
        return self._buffer[start : self._length]

    def reserve(self, rows: int) -> None:
        """Keep at least as many changes as the cluster has rows."""
        wanted = 2 * max(rows, _LEAST)
        if wanted > len(self._buffer):
            buffer = np.zeros(wanted, np.int64)
            buffer[: self._length] = self._buffer[: self._length]
            self._buffer = buffer

    def _forget_half(self) -> None:
        # Not in place: a reader may still hold a view of the rows it asked for.
        keep = self._length // 2
        buffer = np.zeros(len(self._buffer), np.int64)
        buffer[:keep] = self._buffer[self._length - keep : self._length]
        self._offset += self._length - keep
        self._length = keep
        self._buffer = buffer
