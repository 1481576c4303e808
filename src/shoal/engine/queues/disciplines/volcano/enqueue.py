"""Decides which pending groups their queues admit: Volcano's enqueue action.

A queue admits a group when the queue and all its ancestors are open, and when the group's `minResources` fit below
their capabilities together with what runs there and what was admitted before. A group without `minResources` is
admitted at once. Groups with higher priority come first, then older ones. A group that does not fit is skipped, except
in a queue with the dequeue strategy `fifo`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.engine.queues.disciplines.volcano.amounts import uncovered
from shoal.engine.queues.disciplines.volcano.group_phases import GroupRefusal
from shoal.engine.queues.disciplines.volcano.objects import Key, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.pod_counts import GroupPodCounts
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage


class PodGroupCandidate(msgspec.Struct, frozen=True):
    """A group with the counts of its pods."""

    group: QueuedPodGroup
    counts: GroupPodCounts
    priority: int = 0

    @property
    def key(self) -> Key:
        return self.group.metadata.key

    @property
    def is_hopeless(self) -> bool:
        """Whether so many pods failed that the group cannot reach its minimum: no quota is reserved for it."""
        return self.counts.of("Failed") > 0 and self.counts.valid < self.group.spec.min_member

    @property
    def order(self) -> tuple[int, float, Key]:
        return (-self.priority, self.group.metadata.created_s, self.key)


class EnqueueResult(msgspec.Struct, frozen=True):
    enqueued: frozenset[Key]
    refused: dict[Key, GroupRefusal]
    allocated: Usage
    reserved: Usage = {}
    """For admitted groups, beyond what their pods use."""


def enqueue(tree: QueueTree, candidates: Iterable[PodGroupCandidate]) -> EnqueueResult:
    groups = list(candidates)
    allocated: Usage = {}
    reserved: Usage = {}
    for candidate in groups:
        tree.charge(allocated, candidate.group.queue, candidate.counts.allocated)
        if candidate.group.status.phase in ("Inqueue", "Running", "Unknown") and not candidate.is_hopeless:
            tree.charge(
                reserved, candidate.group.queue, uncovered(candidate.counts.allocated, candidate.group.min_resources())
            )
    enqueued: set[Key] = set()
    refused: dict[Key, GroupRefusal] = {}
    blocked: dict[str, GroupRefusal] = {}
    waiting = [candidate for candidate in groups if candidate.group.is_waiting]
    for candidate in sorted(waiting, key=lambda one: one.order):
        queue, asked = candidate.group.queue, candidate.group.min_resources()
        more = uncovered(candidate.counts.allocated, asked)
        refusal = tree.closed(queue) or blocked.get(queue) or tree.over_capability(queue, more, allocated, reserved)
        if refusal is None:
            enqueued.add(candidate.key)
            tree.charge(reserved, queue, more)
            continue
        refused[candidate.key] = refusal
        known_queue = tree.queues.get(queue)
        if refusal.is_quota and known_queue is not None and known_queue.spec.dequeue_strategy == "fifo":
            blocked[queue] = refusal
    return EnqueueResult(frozenset(enqueued), refused, allocated, reserved)
