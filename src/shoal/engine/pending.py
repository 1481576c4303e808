"""Stores pending pods, grouped by equal requests: a cycle looks at one head per request, not at every pod.

When a request fits nowhere, no pending pod with the same request fits, so a backlog of ten thousand equal pods costs a
cycle as much as one pod. Where rules about pods exist, that holds only for pods with the same relevant labels (another
pod's anti-affinity may select the head and not the pod behind it), so each such group of pods has a heap of its own.
The order is priority, then arrival; a pod that is requeued keeps its old place. Pods of a gang are in no heap: they are
decided together.

A group whose request no node could satisfy even if it were empty is left out: a cycle does not try it again before the
nodes change. Without that, two thousand pods with distinct impossible requests cost each cycle 80 ms.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from shoal.engine.charges import Charge
from shoal.engine.domain_counts.all_counts import DomainCounts, LabelKey
from shoal.engine.gang_members import Gangs
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.pods import Waiting

EquivalenceKey = tuple[Charge, LabelKey]

_FIRST: Final = -(1 << 40)

_MOST_STALE: Final = 64
"""How many stale entries a heap may have beyond twice the number of pending pods before they are removed; also the
limit for impossible groups."""

# Among equals in priority: nominated pods, then all others, then pods beyond the minimum of gangs.
NOMINATED: Final = 0
USUAL: Final = 1
SURPLUS: Final = 2
MORE_SURPLUS: Final = 3


def queue_rank(priority: int, phase: int) -> int:
    """One number that sorts by priority, highest first, then by phase."""
    return phase - (priority << 2)


def new_waiting(
    charge: Charge,
    priority: int,
    turn: int,
    *,
    has_precedence: bool = False,
    who: PodIdentity = NO_IDENTITY,
    nominated: str = "",
) -> Waiting:
    """A pending pod with its position in the order."""
    first = _FIRST if has_precedence else queue_rank(priority, NOMINATED if nominated else USUAL)
    return Waiting(charge, priority, turn, has_precedence, who, nominated, first)


class Pending:
    """All waiting pods of a cluster."""

    __slots__ = (
        "_counts",
        "_fresh",
        "_gangs",
        "_heaps",
        "_impossible",
        "_kinship",
        "_nodes",
        "_pods",
        "_possible",
        "_turns",
    )

    def __init__(self, gangs: Gangs, counts: DomainCounts) -> None:
        self._gangs = gangs
        self._counts = counts
        self._kinship = counts.kinship
        self._pods: dict[str, Waiting] = {}
        self._heaps: dict[EquivalenceKey, list[tuple[int, int, str]]] = {}
        self._impossible: dict[EquivalenceKey, list[tuple[int, int, str]]] = {}
        """Groups of pods that no node could run even if it were empty."""
        self._possible: set[EquivalenceKey] = set()
        """Groups of pods that some node could run if it were empty, as far as that was examined."""
        self._nodes = 0
        """The version of the nodes' properties for which both hold."""
        self._fresh: dict[str, None] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def arrivals(self) -> int:
        """Grows with every pod that arrives."""
        return self._turns

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __getitem__(self, key: str) -> Waiting:
        return self._pods[key]

    def charges(self) -> set[Charge]:
        """The asks of all waiting pods."""
        return {waiting.charge for waiting in self._pods.values()}

    def in_order(self) -> list[str]:
        """Waiting pods in the order in which they are tried."""
        return sorted(self._pods, key=lambda key: self._pods[key].order)

    def add(
        self,
        key: str,
        charge: Charge,
        priority: int,
        turn: int | None = None,
        *,
        has_precedence: bool = False,
        who: PodIdentity = NO_IDENTITY,
        nominated: str = "",
    ) -> None:
        """Add a pending pod; with the turn that it had before, it gets its old place."""
        if turn is None:
            turn = self._turns
            self._turns += 1
        if who.group:
            self._gangs.queues(who.group, turn)
        self.restore(
            key, new_waiting(charge, priority, turn, has_precedence=has_precedence, who=who, nominated=nominated)
        )
        self._fresh[key] = None
        if len(self._fresh) > 2 * len(self._pods) + _MOST_STALE:
            self._fresh = {kept: None for kept in self._fresh if kept in self._pods}

    def remove(self, key: str) -> Waiting | None:
        # The heap entry stays and is skipped when its turn comes: removal from the middle of a heap is a scan.
        waiting = self._pods.pop(key, None)
        if waiting is not None and waiting.who.group:
            self._gangs.waits_no_more(waiting.who.group, key)
        return waiting

    def restore(self, key: str, waiting: Waiting) -> None:
        """Undo `remove`. The heap may have dropped the entry meanwhile; a duplicate entry is skipped."""
        self._pods[key] = waiting
        if waiting.who.group:
            self._gangs.waits(waiting.who.group, key, waiting.turn)
            return
        self._queue(key, waiting)

    def _queue(self, key: str, waiting: Waiting) -> None:
        at = waiting.charge, self._counts.label_key(waiting.who.traits)
        heaps = self._impossible if at in self._impossible else self._heaps
        heap = heaps.get(at)
        if heap is None:
            heap = heaps[at] = []
        heappush(heap, (waiting.first, waiting.turn, key))
        if len(heap) > 2 * len(self._pods) + _MOST_STALE:
            # Stale entries behind a head that waits for long are not skipped. A sorted list is a heap.
            heaps[at] = [(*self._pods[pod].order, pod) for pod in self.equivalent_pods(at)]

    def note_nodes(self, version: int) -> None:
        """Record the version of the nodes' properties. After a change `heads` returns every group again."""
        if version != self._nodes:
            self._nodes = version
            self._heaps |= self._impossible
            self._impossible = {}
            self._possible.clear()

    def is_known_possible(self, at: EquivalenceKey) -> bool:
        """Whether `note_possible` has recorded since the nodes changed that some node could run the group's pods."""
        return at in self._possible

    def note_possible(self, at: EquivalenceKey, *, is_possible: bool) -> None:
        """Record whether some node could run the group's pods if it were empty. If none could, `heads` leaves the group
        out until the nodes change."""
        if is_possible:
            self._possible.add(at)
            return
        if at in self._heaps:
            self._impossible[at] = self._heaps.pop(at)
        if len(self._impossible) > 2 * len(self._pods) + _MOST_STALE:
            # `head` never removes the stale entries of these groups.
            self._impossible = {kept: heap for kept, heap in self._impossible.items() if self.equivalent_pods(kept)}

    def heads(self) -> list[tuple[int, int, str, EquivalenceKey]]:
        """The first pod of every group, as a heap."""
        if self._kinship != self._counts.kinship:
            self._regroup()
        heads = []
        for at in list(self._heaps):
            head = self.head(at)
            if head is not None:
                heads.append((*head, at))
        heapify(heads)
        return heads

    def equivalent_pods(self, at: EquivalenceKey) -> list[str]:
        """All pods of a group, in order."""
        there = {
            key
            for first, turn, key in self._heaps.get(at) or self._impossible.get(at) or ()
            if (pod := self._pods.get(key)) is not None
            and (pod.first, pod.turn) == (first, turn)
            and pod.charge is at[0]
        }
        return sorted(there, key=lambda key: self._pods[key].order)

    def _regroup(self) -> None:
        """Group the pods again: pods that were equivalent may differ now."""
        self._kinship = self._counts.kinship
        self._heaps = {}
        self._impossible = {}
        self._possible.clear()
        for key, waiting in self._pods.items():
            if not waiting.who.group:
                self._queue(key, waiting)

    def head(self, at: EquivalenceKey) -> tuple[int, int, str] | None:
        """The first pod of a group that is still pending."""
        charge = at[0]
        heap = self._heaps[at]
        while heap:
            first = heap[0]
            pod = self._pods.get(first[2])
            # A pod that was removed, or added again with another request or priority, has another turn or none.
            if pod is not None and pod.turn == first[1] and pod.first == first[0] and pod.charge is charge:
                return first
            heappop(heap)
        del self._heaps[at]
        self._possible.discard(at)
        return None

    def take_fresh(self) -> list[str]:
        """Pods that were added since the last call and are still pending: their refusals are not reported yet."""
        fresh = [key for key in self._fresh if key in self._pods]
        self._fresh = {}
        return fresh
