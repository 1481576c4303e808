"""Orders sibling queues, and so the jobs below them: whose job is next, worked out anew after every job.

A queue's place depends on what it holds, on its fair share and on the best job below it, and on nothing of its
siblings. So it is a key, and a heap per level keeps the order: a change costs one key for each ancestor of a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

from shoal.engine.queues.disciplines.kai.fair_queues import EACH, NOTHING, Amounts3, QueueNode, plus

QueueKey = tuple[bool, bool, int, bool, float, float, tuple[int, ...], int]


def queue_key(node: QueueNode, step: Amounts3 = NOTHING, less: Amounts3 = NOTHING) -> QueueKey:
    """The place of a queue among its siblings, given the next step of its best job; the lowest comes first.

    `less` is taken off what the queue holds.
    """
    held = [node.allocated[at] - less[at] for at in EACH]
    after = plus(held, step)
    fair, measure = node.fair_share, node.measure
    return (
        all(held[at] > fair[at] for at in EACH),
        not node.is_within_quota(after),
        -node.facts.priority,
        any(after[at] > 0 and measure[at] <= 0 for at in EACH),
        node.dominant_share(after),
        node.dominant_share(held),
        tuple(measure),
        node.age,
    )


class Ordered(Protocol):
    """What is in line in a leaf queue."""

    @property
    def leaf(self) -> QueueNode: ...

    @property
    def step_amounts(self) -> Amounts3: ...


JobT = TypeVar("JobT", bound=Ordered)
JobKey = tuple[object, ...]
KeyOf = Callable[[JobT], JobKey]
QueueKeyOf = Callable[[QueueNode, JobT], tuple[object, ...]]


class JobsByQueue(Generic[JobT]):
    """Jobs in line, the next of all queues first."""

    def __init__(self, jobs: Iterable[JobT], job_key: KeyOf[JobT], key: QueueKeyOf[JobT], depth: int = 0) -> None:
        """`depth`: jobs of a queue that are looked at, 0 for all of them."""
        self._job_key = job_key
        self._key = key
        self._lines: dict[QueueNode, list[tuple[JobKey, JobT]]] = {}
        for job in jobs:
            self._lines.setdefault(job.leaf, []).append((job_key(job), job))
        for leaf, line in self._lines.items():
            if depth and len(line) > depth:
                line.sort(key=lambda item: item[0])
                self._lines[leaf] = line[:depth]
            else:
                heapify(line)
        self._versions: dict[QueueNode, int] = {}
        self._heaps: dict[QueueNode | None, list[tuple[tuple[object, ...], int, int, QueueNode]]] = {}
        leaves = list(self._lines)
        depths = sorted({node for leaf in leaves for node in leaf.path}, key=lambda node: -len(node.path))
        for node in depths:
            self._rekey(node)

    def pop(self) -> JobT | None:
        """The next job, taken out of the line; its queues keep their places until `changed`."""
        leaf = self._first_leaf()
        if leaf is None:
            return None
        job: JobT = heappop(self._lines[leaf])[1]
        return job

    def push(self, job: JobT) -> None:
        """A job comes back; call `changed` afterwards."""
        heappush(self._lines.setdefault(job.leaf, []), (self._job_key(job), job))

    def changed(self, leaf: QueueNode) -> None:
        """The best job of a queue, or what the queue holds, is another."""
        for node in leaf.path:
            self._rekey(node)

    def best(self, node: QueueNode) -> JobT | None:
        """The best job below a queue."""
        leaf = self._descend(node)
        return None if leaf is None else self._lines[leaf][0][1]

    def _first_leaf(self) -> QueueNode | None:
        top = self._first_child(None)
        return None if top is None else self._descend(top)

    def _descend(self, node: QueueNode) -> QueueNode | None:
        while node.children:
            child = self._first_child(node)
            if child is None:
                return None
            node = child
        return node if self._lines.get(node) else None

    def _first_child(self, parent: QueueNode | None) -> QueueNode | None:
        heap = self._heaps.get(parent)
        while heap:
            _, _, version, node = heap[0]
            if version == self._versions.get(node):
                return node
            heappop(heap)
        return None

    def _rekey(self, node: QueueNode) -> None:
        version = self._versions[node] = self._versions.get(node, 0) + 1
        best = self.best(node)
        if best is not None:
            entry = (self._key(node, best), node.age, version, node)
            heappush(self._heaps.setdefault(node.parent, []), entry)
