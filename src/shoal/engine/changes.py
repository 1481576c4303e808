"""Records which rows changed, in order; everything derived from the rows keeps a cursor into this log.

A reader that comes back after a while asks for the rows since its cursor and recomputes only those. If
its cursor is too old, the log says so and the reader recomputes everything, which is cheaper then; so the log never
grows beyond a small multiple of the cluster. Rejected: a dirty flag per row and reader (every change would pay for
every reader), and callbacks (order of registration would become behaviour).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LEAST = 8192


class ChangeLog:
    """An append-only sequence of row numbers of which only the newest part is kept."""

    __slots__ = ("_buffer", "_full", "_offset", "end")

    def __init__(self) -> None:
        self._buffer: NDArray[np.int64] = np.zeros(2 * _LEAST, np.int64)
        self._offset = 0
        """What the oldest change still kept counts as."""
        self._full = len(self._buffer)
        """The end at which there is no more capacity."""
        self.end = 0
        """The cursor of a reader that has seen everything; also the version of the facts behind the log."""

    def append(self, row: int) -> None:
        end = self.end
        if end == self._full:
            self._forget_half()
        self._buffer[end - self._offset] = row
        self.end = end + 1

    def since(self, cursor: int) -> NDArray[np.int64] | None:
        """Rows changed since `cursor`, oldest first, repeats included; None when that is no longer known."""
        offset = self._offset
        if cursor < offset:
            return None
        return self._buffer[cursor - offset : self.end - offset]

    def reserve(self, rows: int) -> None:
        """Keep at least as many changes as the cluster has rows."""
        wanted = 2 * max(rows, _LEAST)
        if wanted > len(self._buffer):
            buffer = np.zeros(wanted, np.int64)
            buffer[: len(self._buffer)] = self._buffer
            self._buffer = buffer
            self._full = self._offset + wanted

    def _forget_half(self) -> None:
        # Not in place: a reader may still hold a view of the rows it asked for.
        half = len(self._buffer) // 2
        buffer = np.zeros(2 * half, np.int64)
        buffer[:half] = self._buffer[half:]
        self._offset += half
        self._full += half
        self._buffer = buffer
