"""Limits the pods of one scheduling cycle, so that costly pods do not delay other work of the process.

The limit is low at the beginning of a backlog, doubles after each short cycle and halves after a long one, but never
falls below its start, because each cycle has a fixed cost. In one process with the API server, 256 pods of 40
anti-affinity terms each would keep every client waiting for a second.

A queue discipline reads all its jobs in each cycle. Its cycles place so many pods that this reading is a fifth of the
cycle, up to a larger limit: otherwise most of the time of a backlog would be spent on reading it again and again.
"""

from __future__ import annotations

LONGEST_S = 0.02
FIRST = 16
MOST_QUEUED = 2048
"""With queue disciplines."""
_READINGS = 4
"""So many times as long as the reading of the jobs a cycle may place pods."""


class CycleSize:
    def __init__(self, most: int, *, is_timed: bool) -> None:
        """Without timing each cycle places up to `most`."""
        self._most = most
        self._first = min(FIRST, most) if is_timed else most
        self.now = self._first

    def note(self, took_s: float, *, is_cut: bool, reading_s: float = 0.0) -> None:
        """Record the duration of a cycle, and whether it left a backlog. `reading_s`: how long of it queue disciplines
        read their jobs."""
        if not is_cut:
            self.now = self._first
        elif _READINGS * reading_s > LONGEST_S:
            wanted = self.now * _READINGS * reading_s / max(took_s - reading_s, 1e-6)
            self.now = max(self._first, min(int(wanted), max(self._most, MOST_QUEUED)))
        elif took_s > LONGEST_S:
            self.now = max(self._first, self.now // 2)
        elif took_s < LONGEST_S / 2:
            self.now = min(self._most, self.now * 2)
