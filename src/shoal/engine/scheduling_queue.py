"""Orders pending pods and gangs: by priority, then nomination, then age.

A step walks the queue once. A pod that does not fit ends the walk for all of the same ask and kin: the pods behind it
ask for the same, and nothing is freed within a step. Only rules about pods can be met by placements of the step itself
(affinity, spread): pods with such rules are tried once more in the end, as long as other pods were placed since. An
ask for which no node would do even if it were empty is set aside until the nodes change, so that later walks do not
try it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush, heapreplace

from shoal.engine.cluster import Cluster
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import gang_phase
from shoal.engine.pending import NOMINATED, EquivalenceKey, queue_rank
from shoal.engine.suitability import has_possible_node

Head = tuple[int, int, str, EquivalenceKey | Gang]


class SchedulingQueue:
    """One walk over everything that waits."""

    __slots__ = ("_aside", "_cluster", "_heap", "_helped", "_pending")

    def __init__(self, cluster: Cluster, kept: AbstractSet[str] = frozenset()) -> None:
        """`kept`: gangs that are left out."""
        self._cluster = cluster
        self._pending = cluster.pending
        cluster.pending.note_nodes(cluster.static_changes.end)
        self._aside: list[Head] = []
        self._helped = False
        self._heap: list[Head] = [*cluster.pending.heads()]
        for gang in cluster.gangs:
            if gang.waiting and gang.name not in kept:
                self._heap.append((*gang_order(cluster, gang), gang.name, gang))
        heapify(self._heap)

    def first(self) -> Head | None:
        """Whose turn it is."""
        if not self._heap and self._aside and self._helped:
            self._heap, self._aside, self._helped = self._aside, [], False
            heapify(self._heap)
        return self._heap[0] if self._heap else None

    def helped(self) -> None:
        """The first got what it wanted."""
        self._helped = True
        _, _, _, what = self._heap[0]
        head = None if isinstance(what, Gang) else self._pending.head(what)
        if head is None:
            heappop(self._heap)
        else:
            heapreplace(self._heap, (*head, what))

    def stuck(self) -> None:
        """The first does not fit, nor does any pod behind it."""
        head = heappop(self._heap)
        what = head[3]
        if not isinstance(what, Gang) and not self._pending.is_known_possible(what):
            is_possible = has_possible_node(self._cluster, what[0])
            self._pending.note_possible(what, is_possible=is_possible)
            if not is_possible:
                return
        asks = [self._pending[pod].charge.ask for pod in what.waiting] if isinstance(what, Gang) else [what[0].ask]
        if any(ask.near.may_wait_for_others() for ask in asks):
            self._aside.append(head)

    def again(self, order: tuple[int, int]) -> None:
        """The first, a gang, comes up for more at another place."""
        self._helped = True
        _, _, name, what = heappop(self._heap)
        heappush(self._heap, (*order, name, what))


def gang_priority(cluster: Cluster, gang: Gang) -> int:
    """What its object says, or the highest of its waiting pods."""
    if gang.facts is not None and gang.facts.priority is not None:
        return gang.facts.priority
    return max(cluster.pending[pod].priority for pod in gang.waiting)


def gang_order(cluster: Cluster, gang: Gang, phase: int | None = None) -> tuple[int, int]:
    """The gang's place in the order, comparable with `Waiting.order`; by default from its pods and nominations."""
    if phase is None:
        nominated = any(cluster.pending[pod].nominated for pod in gang.waiting)
        phase = NOMINATED if nominated else gang_phase(cluster, gang)
    return queue_rank(gang_priority(cluster, gang), phase), gang.turn or 0
