"""Who is next: the heads of all lines and the gangs, by priority, then promise, then turn.

A step walks the line once. Whoever cannot be helped takes everybody with the same ask along: nobody behind it asks for
less, and nothing is freed within a step.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.gangs.members import Gang
from shoal.engine.pending import PROMISED, SURPLUS, USUAL, standing

Head = tuple[int, int, str, Charge | Gang]


class Line:
    """One walk over everything that waits."""

    __slots__ = ("_heap", "_pending")

    def __init__(self, cluster: Cluster) -> None:
        self._pending = cluster.pending
        self._heap: list[Head] = [*cluster.pending.heads()]
        for gang in cluster.gangs:
            if gang.waiting:
                self._heap.append((*gang_order(cluster, gang), gang.name, gang))
        heapify(self._heap)

    def first(self) -> Head | None:
        """Whose turn it is."""
        return self._heap[0] if self._heap else None

    def helped(self) -> None:
        """The first got what it wanted."""
        _, _, _, what = self._heap[0]
        head = None if isinstance(what, Gang) else self._pending.head(what)
        if head is None:
            heappop(self._heap)
        else:
            heapreplace(self._heap, (*head, what))

    def stuck(self) -> None:
        """The first cannot be helped, and nobody behind it either."""
        heappop(self._heap)

    def again(self, order: tuple[int, int]) -> None:
        """The first, a gang, comes up for more at another place."""
        _, _, name, what = heappop(self._heap)
        heappush(self._heap, (*order, name, what))


def gang_priority(cluster: Cluster, gang: Gang) -> int:
    """What its object says, or the highest of its waiting pods."""
    if gang.facts is not None and gang.facts.priority is not None:
        return gang.facts.priority
    return max(cluster.pending[pod].priority for pod in gang.waiting)


def gang_order(cluster: Cluster, gang: Gang, phase: int = USUAL) -> tuple[int, int]:
    """Its place in line, by the measure of `Waiting.order`."""
    if phase != SURPLUS and any(cluster.pending[pod].nominated for pod in gang.waiting):
        phase = PROMISED
    return standing(gang_priority(cluster, gang), phase), gang.turn or 0
