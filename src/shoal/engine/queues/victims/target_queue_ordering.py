"""Orders cluster queues under fair sharing: which one has to give up a workload next.

The search descends from the root to the child with the highest share until it reaches a queue. Only queues that borrow
and the queue of the preempting workload take part. With equal shares, a cohort comes before a queue; between two queues
or two cohorts, the workload that would be the next candidate decides.

Shares are cached until usage changes on the path from a queue to its root: a search that takes workloads of twenty of a
hundred queues computes a hundred shares once, and then one path per victim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.shares import share_of

Weight = tuple[bool, float]
"""A share as it compares: a borrower with weight 0 is above all others, and then the amount counts."""
_NOTHING: Weight = (False, 0.0)


class TargetQueue(NamedTuple):
    """A candidate and its place in the order of all candidates."""

    rank: int
    held: AdmittedWorkload


class Shares:
    """Shares as used now, each worked out once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[CohortNode, Weight] = {}

    def of(self, node: CohortNode) -> Weight:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = share_of(node).key
        return found

    def forget(self, queue: ClusterQueue) -> None:
        """The use of a queue changed."""
        node: CohortNode | None = queue
        while node is not None:
            self._known.pop(node, None)
            node = node.parent

    def without(self, held: AdmittedWorkload, node: CohortNode) -> Weight:
        """The share of a node, at or above the queue of `held`, if that left."""
        held.queue.remove_all(held.usage)
        found = share_of(node).key
        held.queue.add_all(held.usage)
        return found


class TargetQueueOrdering:
    """Candidates by queue, and the way down to the queue that gives next."""

    __slots__ = ("_below", "_left", "_path", "_queue", "_shares")

    def __init__(self, queue: ClusterQueue, candidates: Iterable[TargetQueue], shares: Shares) -> None:
        self._queue = queue
        self._shares = shares
        self._path: dict[CohortNode, CohortNode] = {}
        """Cohort above the asking queue -> its child on the way there."""
        below: CohortNode = queue
        for cohort in queue.path_up():
            self._path[cohort] = below
            below = cohort
        self._left: dict[CohortNode, list[TargetQueue]] = {}
        """Last to be asked first, so that the next is taken from the end."""
        self._below: dict[CohortNode, list[CohortNode]] = {}
        """Children with candidates at or below them."""
        for turn in candidates:
            self._left.setdefault(turn.held.queue, []).append(turn)
        for each, turns in self._left.items():
            turns.reverse()
            self._enter(each)

    def queues(self) -> Iterator[ClusterQueue]:
        """The next queue that gives a workload; the caller takes or drops one after each."""
        root = self._queue.root
        while (found := self._highest(root)) is not None:
            yield found

    def has(self, queue: ClusterQueue) -> bool:
        return bool(self._left[queue])

    def pop(self, queue: ClusterQueue) -> TargetQueue:
        return self._left[queue].pop()

    def drop(self, queue: ClusterQueue) -> None:
        self._left[queue].clear()

    def sides(self, queue: ClusterQueue) -> tuple[CohortNode, CohortNode]:
        """The two children of the lowest common cohort: the one above who asks, and the one above the queue."""
        node: CohortNode = queue
        while node.parent is not None and node.parent not in self._path:
            node = node.parent
        return (self._path[node.parent] if node.parent is not None else self._queue), node

    def _enter(self, node: CohortNode) -> None:
        while node.parent is not None:
            siblings = self._below.setdefault(node.parent, [])
            if node in siblings:
                return
            siblings.append(node)
            node = node.parent

    def _highest(self, node: CohortNode) -> ClusterQueue | None:
        if isinstance(node, ClusterQueue):
            return node if self._left.get(node) else None
        best: tuple[Weight, bool, int] | None = None
        highest: ClusterQueue | None = None
        for child in self._below.get(node, ()):
            weight = self._shares.of(child)
            if weight == _NOTHING and child is not self._queue and child not in self._path:
                continue
            found = self._highest(child)
            if found is None:
                continue
            key = (weight, isinstance(child, Cohort), -self._left[found][-1].rank)
            if best is None or key > best:
                best, highest = key, found
        return highest
