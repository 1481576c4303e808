"""Sums what Workloads went through: how long they waited for quota, and which queue preempted those of which queue.

All of it is read from the conditions of the Workloads that the cluster still has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import ceil

import msgspec

from shoal.views.dashboard.facts import WorkloadFacts


class QueueWait(msgspec.Struct, frozen=True):
    """Of the Workloads of one cluster queue that got quota."""

    admitted: int
    p50_s: float
    p95_s: float


class QueuePreemption(msgspec.Struct, frozen=True, rename="camel"):
    """A Workload that was preempted."""

    namespace: str
    workload: str
    queue: str
    """Its own ClusterQueue."""
    by_queue: str
    """The ClusterQueue of the Workload that it gave way to."""
    reason: str
    at: str


class QueueHistory(msgspec.Struct, frozen=True):
    waits: dict[str, QueueWait]
    """By ClusterQueue."""
    preemptions: Sequence[QueuePreemption]
    """The newest first."""


def queue_history(workloads: Iterable[WorkloadFacts]) -> QueueHistory:
    """`workloads` with their cluster queues."""
    waited: dict[str, list[float]] = {}
    preemptions = []
    for one in workloads:
        seconds = waited_s(one)
        if seconds is not None and one.cluster_queue:
            waited.setdefault(one.cluster_queue, []).append(seconds)
        found = one.preemption
        if found is not None:
            name = f"{one.namespace}/{one.owner or one.name}"
            queue = found.queue or one.cluster_queue
            preemptions.append(QueuePreemption(one.namespace, name, queue, found.by_queue, found.reason, found.at))
    preemptions.sort(key=lambda one: (one.at, one.workload), reverse=True)
    waits = {
        queue: QueueWait(len(found), percentile(found, 50), percentile(found, 95)) for queue, found in waited.items()
    }
    return QueueHistory(waits, preemptions)


def percentile(values: Iterable[float], percent: int) -> float:
    """By the nearest rank: the smallest value that so many percent of all values do not exceed."""
    found = sorted(values)
    return found[max(0, ceil(len(found) * percent / 100) - 1)]


def waited_s(one: WorkloadFacts) -> float | None:
    """From its creation, or from when it was queued again, until it got quota; None where a time cannot be read."""
    try:
        start, end = (datetime.fromisoformat(text) for text in (one.requeued or one.created, one.reserved))
        return max(0.0, (end - start).total_seconds())
    except (TypeError, ValueError):
        return None
