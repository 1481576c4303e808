"""Orders the pending workloads of one cluster queue and yields the next head.

Workloads with the same pods and the same priority form an equivalence class: if the first of them cannot be admitted,
none can. The class becomes inadmissible as a whole and is requeued as a whole. A backlog of fifty thousand equal
workloads costs as much as one workload; the cost grows with the number of classes.

Rejected: one heap and a set of inadmissible workloads, as in Kueue, where each released core moves a whole backlog
between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from shoal.engine.queues.equivalence_class import EquivalenceClass, Form, ReportedReason
from shoal.engine.queues.workloads import PendingWorkload, QueueingKey

LocalUse = Callable[[str], float]
"""Local queue -> its usage, for queues that admit by usage."""


class PendingWorkloads:
    """The waiting workloads of one cluster queue."""

    __slots__ = ("_classes", "_heap", "_members", "_sticky", "_turn", "is_strict", "out")

    def __init__(self, *, is_strict: bool) -> None:
        self.is_strict = is_strict
        self._classes: dict[Form, EquivalenceClass] = {}
        self._members: dict[str, EquivalenceClass] = {}
        self._heap: list[tuple[int, float, str, str, int, EquivalenceClass]] = []
        """(-priority, stamp, uid, key, turn, class) of the heads of active classes."""
        self._sticky = ""
        self._turn = 0
        self.out: PendingWorkload | None = None
        """The head that a cycle is deciding on."""

    def __len__(self) -> int:
        return len(self._members) + (self.out is not None)

    def __contains__(self, key: str) -> bool:
        return key in self._members or (self.out is not None and self.out.key == key)

    def add(self, waiting: PendingWorkload) -> bool:
        """Join its equivalence class; returns whether there may be a new head."""
        form = waiting.form
        found = self._classes.get(form)
        if found is None:
            found = self._classes[form] = EquivalenceClass(form)
        head = found.head()
        found.members[waiting.key] = waiting
        self._members[waiting.key] = found
        heappush(found.heap, (waiting.stamp_s, waiting.facts.uid, waiting.key))
        if found.inadmissible_stamp is not None:
            if waiting.stamp_s >= found.inadmissible_stamp:
                return False
            found.inadmissible_stamp = None
        if found.head() is not head or len(found.members) == 1:
            self._offer(found)
        return True

    def remove(self, key: str) -> bool:
        """Remove a workload; whether it was there."""
        if self._sticky == key:
            self._sticky = ""
        if self.out is not None and self.out.key == key:
            self.out = None
            return True
        found = self._members.pop(key, None)
        if found is None:
            return False
        del found.members[key]
        if not found.members:
            del self._classes[found.form]
            self._void(found)
        elif found.inadmissible_stamp is None:
            self._offer(found)
        return True

    def pop(self, local_use: LocalUse | None = None) -> PendingWorkload | None:
        """Take the head out; `requeue` or `make_inadmissible` returns it."""
        head = self._head(local_use)
        if head is None:
            return None
        found = self._members.pop(head.key)
        del found.members[head.key]
        if not found.members:
            del self._classes[found.form]
            self._void(found)
        else:
            self._offer(found)
        self.out = head
        return head

    def admitted(self) -> None:
        """The head was admitted and does not return."""
        if self.out is not None and self._sticky == self.out.key:
            self._sticky = ""
        self.out = None

    def requeue(self, *, sticky: bool = False) -> None:
        """Return the head; it stays first among workloads of equal priority and age."""
        head, self.out = self.out, None
        if head is None:
            return
        if sticky and not self.is_strict:
            self._sticky = head.key
        elif self._sticky == head.key:
            self._sticky = ""
        self.add(head)

    def make_inadmissible(self, reported: ReportedReason, *, whole_class: bool) -> None:
        """Make the head inadmissible, or with `whole_class` all workloads of its equivalence class."""
        head, self.out = self.out, None
        if head is None:
            return
        if self._sticky == head.key:
            self._sticky = ""
        if not whole_class:
            head.alone = True
        self.add(head)
        for found in self._like(head):
            found.inadmissible_stamp, found.reported = head.stamp_s, reported
            self._void(found)

    def make_requeued_inadmissible(self, key: str, reported: ReportedReason) -> None:
        """Make a requeued workload inadmissible, unless others are being preempted for it."""
        found = self._members.get(key)
        if found is not None and self._sticky != key:
            found.inadmissible_stamp, found.reported = found.members[key].stamp_s, reported
            self._void(found)

    def queue_inadmissible(self) -> bool:
        """Make all inadmissible workloads active; returns whether any workload is pending."""
        for found in list(self._classes.values()):
            if found.inadmissible_stamp is not None:
                found.inadmissible_stamp = None
                self._gather(found)
                self._offer(found)
        return bool(self._members)

    def is_active(self, key: str) -> bool:
        """Whether it takes part in the next cycle, or may."""
        found = self._members.get(key)
        return found is not None and found.inadmissible_stamp is None

    def reported_of(self, key: str) -> ReportedReason | None:
        """The reason that its class reported when it became inadmissible."""
        found = self._members.get(key)
        return None if found is None or found.inadmissible_stamp is None else found.reported

    def each(self) -> Iterator[tuple[PendingWorkload, bool]]:
        """All workloads and whether they are active, in no order."""
        for found in self._classes.values():
            for waiting in found.members.values():
                yield waiting, found.inadmissible_stamp is None

    def get(self, key: str) -> PendingWorkload | None:
        found = self._members.get(key)
        return found.members[key] if found is not None else None

    def blocker_of(self, key: str, local_use: LocalUse | None = None) -> str:
        """The workload that has to be admitted before this one, as StrictFIFO requires; empty where none has to."""
        head = self._head(local_use) if self.is_strict else None
        return "" if head is None or head.key == key else head.key

    # internals

    def _like(self, head: PendingWorkload) -> list[EquivalenceClass]:
        """Its class, and where usage decides the order the equal classes of other local queues."""
        own, label_key = self._members[head.key], head.label_key
        if head.alone or label_key is None or not label_key.share:
            return [own]
        return [found for found in self._classes.values() if found is own or _is_like(found.form, label_key)]

    def _gather(self, found: EquivalenceClass) -> None:
        """Return a workload that became inadmissible alone to its class."""
        waiting = found.head()
        if waiting is None or not waiting.alone:
            return
        waiting.alone = False
        self.remove(waiting.key)
        self.add(waiting)

    def _void(self, found: EquivalenceClass) -> None:
        """Invalidate the heap entries of the class."""
        self._turn += 1
        found.turn = self._turn

    def _offer(self, found: EquivalenceClass) -> None:
        self._void(found)
        head = found.head()
        if head is None:
            return
        entry = (-head.facts.priority, head.stamp_s, head.facts.uid, head.key, found.turn, found)
        if len(self._heap) > 4 * len(self._classes) + 16:
            self._heap = [each for each in self._heap if each[4] == each[5].turn]
            heapify(self._heap)
        heappush(self._heap, entry)

    def _head(self, local_use: LocalUse | None) -> PendingWorkload | None:
        if self._sticky and self._sticky in self._members:
            found = self._members[self._sticky]
            if found.inadmissible_stamp is None:
                return found.members[self._sticky]
        if local_use is not None:
            return self._least_used(local_use)
        heap = self._heap
        while heap:
            turn, found = heap[0][4], heap[0][5]
            if turn == found.turn and found.inadmissible_stamp is None and found.members:
                return found.head()
            heappop(heap)
        return None

    def _least_used(self, local_use: LocalUse) -> PendingWorkload | None:
        best: tuple[tuple[float, int, float, str, str], PendingWorkload] | None = None
        for found in self._classes.values():
            head = found.head()
            if head is None or found.inadmissible_stamp is not None:
                continue
            facts = head.facts
            rank = (local_use(facts.queue), -facts.priority, head.stamp_s, facts.uid, head.key)
            if best is None or rank < best[0]:
                best = (rank, head)
        return None if best is None else best[1]


def _is_like(form: Form, label_key: QueueingKey) -> bool:
    return isinstance(form, QueueingKey) and (form.priority, form.shape) == (label_key.priority, label_key.shape)
