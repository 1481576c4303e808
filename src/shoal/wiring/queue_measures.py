"""Queues as they are now, in the words of whoever measures them: from the desk that decides about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from shoal.controllers.queues.figures import Census, Figures, census_of
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import Usage
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.shares import share_of
from shoal.engine.queues.state import Queues
from shoal.store.watched.queue_news import WorkloadSight
from shoal.telemetry.queues import QueueFigure, QuotaFigure

_MILLI = 1000.0


class Watched(Protocol):
    def sights(self) -> list[WorkloadSight]: ...


class Desk(Protocol):
    @property
    def kueue(self) -> Kueue: ...


class QueueLevels:
    """`QueueSource` over a desk."""

    def __init__(self, desk: Desk, watched: Watched) -> None:
        self._desk = desk
        self._watched = watched
        self._census = Census()

    def cluster_queues(self) -> Iterator[QueueFigure]:
        kueue, self._census = self._desk.kueue, self._look()
        queues = kueue.queues
        active = Counter(
            queues.local_queues[state.queue].cluster_queue
            for state in kueue.states()
            if state.state == "active" and state.queue in queues.local_queues
        )
        for name, queue in queues.cluster_queues.items():
            figures = self._census.cluster_queues.get(name, Figures())
            yield QueueFigure(
                name,
                cohort=queue.parent.name if queue.parent is not None else "",
                state="active" if queue.closed is None else "pending",
                active=min(active[name], figures.pending),
                inadmissible=max(0, figures.pending - active[name]),
                reserving=figures.reserving,
                admitted=figures.admitted,
                share=share_of(queue).weighted if queues.settings.fair_sharing else None,
                quotas=tuple(_quotas(queue, figures)),
            )

    def local_queues(self) -> Iterator[QueueFigure]:
        """After the cluster queues, of the same moment."""
        queues = self._desk.kueue.queues
        active = Counter(state.queue for state in self._desk.kueue.states() if state.state == "active")
        for key, local in queues.local_queues.items():
            figures, queue = (
                self._census.local_queues.get(key, Figures()),
                queues.cluster_queues.get(local.cluster_queue),
            )
            namespace, _, name = key.partition("/")
            yield QueueFigure(
                name,
                namespace,
                active=min(active[key], figures.pending),
                inadmissible=max(0, figures.pending - active[key]),
                reserving=figures.reserving,
                admitted=figures.admitted,
                quotas=() if queue is None else tuple(_quotas(queue, figures)),
            )

    def _look(self) -> Census:
        queues: Queues = self._desk.kueue.queues
        return census_of(queues, {sight.key: sight for sight in self._watched.sights()})


def _quotas(queue: ClusterQueue, figures: Figures) -> Iterator[QuotaFigure]:
    for group in queue.facts.groups:
        for flavor in group.flavors:
            for resource, quota in flavor.quotas.items():
                yield QuotaFigure(
                    flavor.name,
                    resource,
                    _amount(resource, _used(figures.reserved, flavor.name, resource)),
                    _amount(resource, _used(figures.used, flavor.name, resource)),
                    _amount(resource, quota.nominal),
                    None if quota.borrowing is None else _amount(resource, quota.borrowing),
                    None if quota.lending is None else _amount(resource, quota.lending),
                )


def _used(usage: Usage, flavor: str, resource: str) -> int:
    return usage.get((flavor, resource), 0)


def _amount(resource: str, amount: int) -> float:
    return amount / _MILLI if resource == "cpu" else float(amount)
