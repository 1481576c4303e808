"""Counts unadmitted workloads by reason, with Kueue's metric names, by cluster queue and by local queue.

Also of those whose queue is not there: no queue counts them among its own, and they are those that wait in vain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Registry

ROLE = "replica_role"


class UnadmittedFigure(msgspec.Struct, frozen=True):
    """So many workloads of a local queue are not admitted for one and the same reason."""

    local_queue: tuple[str, str]
    """Name and namespace."""
    cluster_queue: str
    """Empty where the local queue, or the one it leads to, is not there."""
    reason: str
    """Of `Admitted` being False."""
    cause: str
    """Of `QuotaReserved` being False, or what else is lacking."""
    count: int


def follow_unadmitted(registry: Registry, role: str, look: Callable[[], list[UnadmittedFigure]]) -> None:
    def by_cluster_queue() -> Iterator[tuple[Values, float]]:
        counts = Counter[tuple[str, str, str]]()
        for one in look():
            counts[one.cluster_queue, one.reason, one.cause] += one.count
        return (((*values, role), float(count)) for values, count in counts.items())

    def by_local_queue() -> Iterator[tuple[Values, float]]:
        return (((*one.local_queue, one.cluster_queue, one.reason, one.cause, role), one.count) for one in look())

    words, why = "Workloads that are not admitted, by reason.", ("cluster_queue", "reason", "underlying_cause", ROLE)
    registry.reads(MetricHead("gauge", "kueue_unadmitted_workloads", words, why), by_cluster_queue)
    own = MetricHead("gauge", "kueue_local_queue_unadmitted_workloads", words, ("name", "namespace", *why))
    registry.reads(own, by_local_queue)
