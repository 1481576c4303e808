"""Try, mark, roll back, commit: every decision changes the facts through here, so a failed trial leaves no trace.

Amounts are integers and every step has an exact inverse, so rolling back restores the facts bit for bit; what is
derived from them (keys, blocks) sees the steps in the change log and comes out equal too. Rejected: trying on a copy,
which costs a copy of the fleet per trial.
"""

from __future__ import annotations

from shoal.engine.cluster import Cluster, Holding
from shoal.engine.devices.demand import Grant
from shoal.engine.pending import Waiting
from shoal.units.errors import BugError


class Ledger:
    """The open trial on one cluster. Steps are undone in reverse order."""

    __slots__ = ("_cluster", "_steps")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._steps: list[tuple[str, Waiting | Holding]] = []

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._steps)

    def place(self, key: str, row: int, grant: Grant | None) -> None:
        """A waiting pod takes its place on a row."""
        cluster = self._cluster
        waiting = cluster.pending.remove(key)
        if waiting is None:
            raise BugError(f"placing {key}, which does not wait")
        cluster.hold(
            key, Holding(row, waiting.charge, grant, waiting.priority, waiting.turn, False, waiting.goes_first)
        )
        self._steps.append((key, waiting))

    def evict(self, key: str) -> None:
        """A pod leaves its row and is gone; a trial may ask what that would make possible."""
        self._steps.append((key, self._cluster.release(key)))

    def rollback(self, mark: int = 0) -> None:
        """Undo everything since the mark."""
        cluster = self._cluster
        while len(self._steps) > mark:
            key, before = self._steps.pop()
            if isinstance(before, Waiting):
                cluster.release(key)
                cluster.pending.restore(key, before)
            else:
                cluster.hold(key, before)

    def commit(self) -> None:
        """Keep everything; there is nothing left to undo."""
        self._steps.clear()
