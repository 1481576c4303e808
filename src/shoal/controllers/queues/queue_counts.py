"""Counts pending, reserving and admitted Workloads and their usage, for each ClusterQueue and LocalQueue. The statuses
of queues and the metrics show these counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from shoal.api.resources import CPU
from shoal.client.conditions import Moment, Status
from shoal.controllers.queues.api_values import amount_to_api
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, LocalQueueFacts, Usage
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.state import Queues
from shoal.store.watched.queue_changes import WorkloadView


class QueueCounts(msgspec.Struct):
    """`reserved` is the usage of all Workloads with quota, `used` of those among them that are admitted."""

    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    reserved: Usage = {}
    used: Usage = {}

    def to_api(self) -> Status:
        return {
            "pendingWorkloads": self.pending,
            "reservingWorkloads": self.reserving,
            "admittedWorkloads": self.admitted,
        }


class AllQueueCounts(msgspec.Struct):
    """The counts of all queues at one moment."""

    cluster_queues: dict[str, QueueCounts] = {}
    local_queues: dict[str, QueueCounts] = {}


def count_queues(queues: Queues, views: Mapping[str, WorkloadView]) -> AllQueueCounts:
    found = AllQueueCounts()
    pending = Counter(view.queue for view in views.values() if is_pending(queues, view))
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


def is_pending(queues: Queues, view: WorkloadView) -> bool:
    facts = view.facts
    return facts is not None and facts.active and not view.is_finished and view.key not in queues.held


def usage_to_api(queue: ClusterQueue, usage: Usage, *, borrows: bool) -> list[Status]:
    """The usage of each flavor and resource of the queue, in the queue's order."""
    return [
        {"name": flavor, "resources": [_resource(queue, (flavor, name), usage, borrows=borrows) for name in names]}
        for flavor, names in _covered(queue)
    ]


def put_recent_usage(status: Status, kueue: Kueue, local: LocalQueueFacts, moment: Moment) -> None:
    """Write the recent usage of a LocalQueue for admission fair sharing, once per sampling interval as Kueue does.

    Between two writes, another process computes the usage from the last write and from the Workloads that have held
    quota since.
    """
    queue = kueue.queues.cluster_queues.get(local.cluster_queue)
    if not kueue.usage.is_on or queue is None or not queue.facts.by_usage:
        return
    sharing = status.get("fairSharing") or {}
    before = sharing.get("admissionFairSharingStatus") or {}
    written_s = _seconds(before.get("lastUpdate"))
    if written_s is not None and moment.seconds < written_s + kueue.queues.settings.usage_sampling_s:
        return
    consumed = kueue.usage.consumed(local.key, moment.seconds)
    amounts = {name: _consumed_to_api(name, amount) for name, amount in sorted(consumed.items())}
    status["fairSharing"] = {
        "weightedShare": 0,
        **sharing,
        "admissionFairSharingStatus": {"consumedResources": amounts, "lastUpdate": moment.text},
    }


def _covered(queue: ClusterQueue) -> Iterable[tuple[str, Iterable[str]]]:
    for group in queue.facts.groups:
        for flavor in group.flavors:
            yield flavor.name, flavor.quotas


def _resource(queue: ClusterQueue, fr: FlavorResource, usage: Usage, *, borrows: bool) -> Status:
    total = usage.get(fr, 0)
    found: Status = {"name": fr[1], "total": amount_to_api(fr[1], total)}
    if borrows:
        over = max(0, total - queue.nominal.get(fr, 0)) if queue.facts.cohort else 0
        found["borrowed"] = amount_to_api(fr[1], over)
    return found


def _add(total: Usage, more: Usage) -> None:
    for fr, amount in more.items():
        total[fr] = total.get(fr, 0) + amount


def _consumed_to_api(resource: str, amount: float) -> str:
    return amount_to_api(resource, round(amount * 1000) if resource == CPU else round(amount))


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
