"""Who waits, who holds and how much, per cluster queue and local queue: what statuses and metrics show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from shoal.controllers.queues.spelling import amount_text
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Usage
from shoal.engine.queues.state import Queues
from shoal.store.live.conditions import Status
from shoal.store.watched.queue_news import WorkloadSight


class Figures(msgspec.Struct):
    """`reserved` and `used` are of whoever has quota, and of those among them who are admitted."""

    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    reserved: Usage = {}
    used: Usage = {}

    def counts(self) -> Status:
        return {
            "pendingWorkloads": self.pending,
            "reservingWorkloads": self.reserving,
            "admittedWorkloads": self.admitted,
        }


class Census(msgspec.Struct):
    """All queues at one moment."""

    cluster_queues: dict[str, Figures] = {}
    local_queues: dict[str, Figures] = {}


def census_of(queues: Queues, sights: Mapping[str, WorkloadSight]) -> Census:
    census = Census()
    pending = Counter(sight.queue for sight in sights.values() if waits(queues, sight))
    for door, count in pending.items():
        local = queues.local_queues.get(door)
        if local is None:
            continue
        census.local_queues.setdefault(door, Figures()).pending = count
        if local.stop == "None":
            census.cluster_queues.setdefault(local.cluster_queue, Figures()).pending += count
    for held in queues.held.values():
        for figures in (
            census.cluster_queues.setdefault(held.queue.name, Figures()),
            census.local_queues.setdefault(held.facts.queue, Figures()),
        ):
            figures.reserving += 1
            _add(figures.reserved, held.usage)
            if held.facts.admitted:
                figures.admitted += 1
                _add(figures.used, held.usage)
    return census


def waits(queues: Queues, sight: WorkloadSight) -> bool:
    facts = sight.facts
    return facts is not None and facts.active and not sight.is_finished and sight.key not in queues.held


def usage_of(queue: ClusterQueue, usage: Usage, *, borrows: bool) -> list[Status]:
    """Every flavor and resource of the queue, in its order."""
    return [
        {"name": flavor, "resources": [_resource(queue, (flavor, name), usage, borrows=borrows) for name in names]}
        for flavor, names in _covered(queue)
    ]


def _covered(queue: ClusterQueue) -> Iterable[tuple[str, Iterable[str]]]:
    for group in queue.facts.groups:
        for flavor in group.flavors:
            yield flavor.name, flavor.quotas


def _resource(queue: ClusterQueue, fr: FlavorResource, usage: Usage, *, borrows: bool) -> Status:
    total = usage.get(fr, 0)
    found: Status = {"name": fr[1], "total": amount_text(fr[1], total)}
    if borrows:
        over = max(0, total - queue.nominal.get(fr, 0)) if queue.facts.cohort else 0
        found["borrowed"] = amount_text(fr[1], over)
    return found


def _add(total: Usage, more: Usage) -> None:
    for fr, amount in more.items():
        total[fr] = total.get(fr, 0) + amount
