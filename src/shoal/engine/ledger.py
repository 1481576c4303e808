"""Records every change that a decision makes to the facts (mark, roll back, commit), so that a failed trial leaves no
trace.

Amounts are integers and every step has an exact inverse, so rolling back restores the facts bit for bit; what is
derived from them (keys, blocks) sees the steps in the change log and comes out equal too. Rejected: trying on a copy,
which costs a copy of the fleet per trial.
"""

from __future__ import annotations

from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.pending import new_waiting
from shoal.engine.pods import PodAllocation, PodState, Waiting
from shoal.units.errors import BugError


class Ledger:
    """The open trial on one cluster. Steps are undone in reverse order."""

    __slots__ = ("_cluster", "_steps")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._steps: list[tuple[str, Waiting | PodAllocation | None]] = []
        """Pod, and what it was before: in line, on a row, or on a row and not leaving (None)."""

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._steps)

    def place(self, key: str, row: int, grant: DeviceGrant | None, *, nominated: bool = False) -> None:
        """A waiting pod takes its place on a row, at once or as soon as others have left it."""
        cluster = self._cluster
        waiting = cluster.pending.remove(key)
        if waiting is None:
            raise BugError(f"placing {key}, which does not wait")
        cluster.hold(
            key,
            PodAllocation(
                row,
                waiting.charge,
                grant,
                waiting.priority,
                waiting.turn,
                PodState.NOMINATED if nominated else PodState.ASSUMED,
                waiting.has_precedence,
                "",
                waiting.who,
            ),
        )
        self._steps.append((key, waiting))

    def evict(self, key: str) -> None:
        """A pod leaves its row and is gone; a trial may ask what that would make possible."""
        self._steps.append((key, self._cluster.release(key)))

    def reinstate(self, key: str, allocation: PodAllocation) -> None:
        """Undo the eviction of one pod within the trial that evicted it; marks made after the eviction are void."""
        self._cluster.hold(key, allocation)
        steps = self._steps
        # Searched from the end: a search for victims takes back what it has just tried.
        for index in range(len(steps) - 1, -1, -1):
            if steps[index][1] is allocation:
                del steps[index]
                return
        raise BugError(f"reinstating {key}, which no step of this trial evicted")

    def withdraw(self, key: str) -> None:
        """Make a pod that only our plan placed pending again, at its old place and nominated for the row."""
        cluster = self._cluster
        allocation = cluster.release(key)
        cluster.pending.restore(
            key, _waiting_again(allocation, cluster.names[allocation.row] if allocation.is_nominated else "")
        )
        self._steps.append((key, allocation))

    def mark_terminating(self, key: str) -> None:
        """Mark a pod as terminating; it keeps its resources until it has ended."""
        self._cluster.mark_terminating(key)
        self._steps.append((key, None))

    def placed_since(self, mark: int) -> list[str]:
        """The pods placed since the mark, in order."""
        return [key for key, before in self._steps[mark:] if isinstance(before, Waiting)]

    def rollback(self, mark: int = 0) -> None:
        """Undo everything since the mark."""
        cluster = self._cluster
        while len(self._steps) > mark:
            key, before = self._steps.pop()
            if before is None:
                cluster.mark_terminating(key, False)
            elif isinstance(before, Waiting):
                cluster.release(key)
                cluster.pending.restore(key, before)
            else:
                cluster.pending.remove(key)
                cluster.hold(key, before)

    def commit(self) -> None:
        """Keep everything; there is nothing left to undo."""
        self._steps.clear()


def _waiting_again(allocation: PodAllocation, nominated: str) -> Waiting:
    return new_waiting(
        allocation.charge,
        allocation.priority,
        allocation.turn or 0,
        has_precedence=allocation.has_precedence,
        who=allocation.who,
        nominated=nominated,
    )
