"""Orders the heads of one cycle.

Classical: the least borrowing first, then priority, then time. With fair sharing: a tournament in each tree, repeated
after each admission; at every cohort the child that would have the smaller share with its candidate goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.entry import CycleEntry
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.shares import WeightedShare, share_of
from shoal.engine.queues.state import Queues

Rank = tuple[int, int, float, str, str]


def classical_rank(entry: CycleEntry, *, by_priority: bool) -> Rank:
    """Smallest first."""
    waiting = entry.waiting
    priority = -waiting.facts.priority if by_priority else 0
    return (entry.borrow, priority, waiting.stamp_s, waiting.facts.uid, waiting.key)


class Classical:
    """All heads in one sorted list."""

    def __init__(self, queues: Queues, entries: Iterable[CycleEntry]) -> None:
        by_priority = "PrioritySortingWithinCohort" in queues.settings.gates
        self._entries = sorted(entries, key=lambda entry: classical_rank(entry, by_priority=by_priority))

    def __iter__(self) -> Iterator[CycleEntry]:
        return iter(self._entries)

    def changed(self) -> None:
        """Nothing depends on what the others got."""


class Tournament:
    """Fair sharing's order."""

    def __init__(self, queues: Queues, entries: Iterable[CycleEntry]) -> None:
        self._by_priority = "PrioritySortingWithinCohort" in queues.settings.gates
        self._of: dict[ClusterQueue, CycleEntry] = {entry.queue: entry for entry in entries}
        self._shares: dict[tuple[str, str], tuple[bool, WeightedShare]] = {}
        """(cohort, workload) -> how the cohort's child on the workload's path would change with it."""
        self._known: set[CohortNode] = set()
        """Trees whose shares are worked out and still true."""

    def __iter__(self) -> Iterator[CycleEntry]:
        while self._of:
            first = next(iter(self._of))
            root = first.root
            if not isinstance(root, Cohort):
                yield self._of.pop(first)
                continue
            if root not in self._known:
                self._work_out(root)
                self._known.add(root)
            winner = self._winner(root)
            if winner is None:  # the queue is in the tree, so there is one
                yield self._of.pop(first)
                continue
            del self._of[winner.queue]
            yield winner

    def changed(self) -> None:
        """A head was admitted: all shares may differ."""
        self._known.clear()

    def _work_out(self, root: Cohort) -> None:
        for queue, entry in self._of.items():
            if queue.root is not root:
                continue
            queue.add_all(entry.usage)
            child: CohortNode = queue
            for cohort in queue.path_up():
                borrows = any(child.borrows(fr) for fr, amount in entry.usage.items() if amount)
                self._shares[cohort.name, entry.waiting.key] = (borrows, share_of(child))
                child = cohort
            queue.remove_all(entry.usage)

    def _winner(self, cohort: Cohort) -> CycleEntry | None:
        best: CycleEntry | None = None
        for child in cohort.children:
            found = self._winner(child) if isinstance(child, Cohort) else self._entry_of(child)
            if found is not None and (best is None or self._is_before(found, best, cohort)):
                best = found
        return best

    def _entry_of(self, child: CohortNode) -> CycleEntry | None:
        return self._of.get(child) if isinstance(child, ClusterQueue) else None

    def _is_before(self, one: CycleEntry, other: CycleEntry, cohort: Cohort) -> bool:
        borrows, share = self._shares[cohort.name, one.waiting.key]
        other_borrows, other_share = self._shares[cohort.name, other.waiting.key]
        if borrows != other_borrows:
            return other_borrows
        if share.key != other_share.key:
            return share.key < other_share.key
        return self._rank(one) < self._rank(other)

    def _rank(self, entry: CycleEntry) -> tuple[int, float, str, str]:
        waiting = entry.waiting
        priority = -waiting.facts.priority if self._by_priority else 0
        return (priority, waiting.stamp_s, waiting.facts.uid, waiting.key)
