"""Writes the counts of Workloads and their usage into the statuses of ClusterQueues and LocalQueues."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from shoal.api.resources import CPU
from shoal.client.conditions import Status, WriteTime
from shoal.controllers.queues.api_values import amount_to_api
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, LocalQueueFacts, Usage
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.queue_counts import QueueCounts


def counts_to_api(counts: QueueCounts) -> Status:
    return {
        "pendingWorkloads": counts.pending,
        "reservingWorkloads": counts.reserving,
        "admittedWorkloads": counts.admitted,
    }


def usage_to_api(queue: ClusterQueue, usage: Usage, *, borrows: bool) -> list[Status]:
    """The usage of each flavor and resource of the queue, in the queue's order."""
    return [
        {"name": flavor, "resources": [_resource(queue, (flavor, name), usage, borrows=borrows) for name in names]}
        for flavor, names in _covered(queue)
    ]


def put_recent_usage(status: Status, kueue: Kueue, local: LocalQueueFacts, moment: WriteTime) -> None:
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


def _consumed_to_api(resource: str, amount: float) -> str:
    return amount_to_api(resource, round(amount * 1000) if resource == CPU else round(amount))


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
