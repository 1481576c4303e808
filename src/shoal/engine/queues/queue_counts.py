"""Counts pending, reserving and admitted Workloads and their usage, for each ClusterQueue and LocalQueue. The statuses
of queues and the metrics show these counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import msgspec

from shoal.engine.queues.facts import Usage, WorkloadFacts
from shoal.engine.queues.state import Queues


class WorkloadState(Protocol):
    """What is counted of a Workload."""

    @property
    def key(self) -> str: ...

    @property
    def queue(self) -> str:
        """The key of its LocalQueue."""
        ...

    @property
    def facts(self) -> WorkloadFacts | None:
        """None if the Workload has finished or cannot be read."""
        ...

    @property
    def is_finished(self) -> bool: ...


class QueueCounts(msgspec.Struct):
    """`reserved` is the usage of all Workloads with quota, `used` of those among them that are admitted."""

    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    reserved: Usage = {}
    used: Usage = {}


class AllQueueCounts(msgspec.Struct):
    """The counts of all queues at one moment."""

    cluster_queues: dict[str, QueueCounts] = {}
    local_queues: dict[str, QueueCounts] = {}


def count_queues(queues: Queues, workloads: Iterable[WorkloadState]) -> AllQueueCounts:
    found = AllQueueCounts()
    pending = Counter(workload.queue for workload in workloads if is_pending(queues, workload))
    for key, count in pending.items():
        local = queues.local_queues.get(key)
        if local is None:
            continue
        found.local_queues.setdefault(key, QueueCounts()).pending = count
        if local.stop == "None":
            found.cluster_queues.setdefault(local.cluster_queue, QueueCounts()).pending += count
    for held in queues.held.values():
        for counts in (
            found.cluster_queues.setdefault(held.queue.name, QueueCounts()),
            found.local_queues.setdefault(held.facts.queue, QueueCounts()),
        ):
            counts.reserving += 1
            _add(counts.reserved, held.usage)
            if held.facts.admitted:
                counts.admitted += 1
                _add(counts.used, held.usage)
    return found


def is_pending(queues: Queues, workload: WorkloadState) -> bool:
    facts = workload.facts
    return facts is not None and facts.active and not workload.is_finished and workload.key not in queues.held


def _add(total: Usage, more: Usage) -> None:
    for fr, amount in more.items():
        total[fr] = total.get(fr, 0) + amount
