"""Groups pending workloads with equal requests, so that a decision about the first of them holds for all.

The heap keeps entries of removed workloads, which are skipped when they come first: removing an entry from the middle
would cost time proportional to the size of the heap.
"""

from __future__ import annotations

from heapq import heappop

from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.workloads import PendingWorkload

Form = tuple[object, ...]
ReportedReason = tuple[Wait, str]
"""The reason for waiting, and its message."""


class EquivalenceClass:
    """Workloads of one form, oldest first."""

    __slots__ = ("form", "heap", "inadmissible_stamp", "members", "reported", "turn")

    def __init__(self, form: Form) -> None:
        self.form = form
        self.heap: list[tuple[float, str, str]] = []
        """(stamp, uid, key), with leftovers of workloads that have gone."""
        self.members: dict[str, PendingWorkload] = {}
        self.inadmissible_stamp: float | None = None
        """The stamp of the member that was turned away; None while the class is active."""
        self.reported: ReportedReason | None = None
        """Why it was turned away."""
        self.turn = 0
        """Moves with the head, so that older entries of the line's heap are known to be void."""

    def head(self) -> PendingWorkload | None:
        heap, members = self.heap, self.members
        while heap:
            found = members.get(heap[0][2])
            if found is not None and (found.stamp_s, found.facts.uid) == heap[0][:2]:
                return found
            heappop(heap)
        return None
