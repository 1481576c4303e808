"""Looks up what no topology domain can hold of a workload that waits for one."""

from __future__ import annotations

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.domain_limits import DomainLimit, DomainLimits
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait


class QueueLimits:
    """Answers for the queues as they are; to be thrown away when they change."""

    def __init__(self, kueue: Kueue) -> None:
        self._kueue = kueue
        self._limits = DomainLimits(kueue.queues)

    def of(self, waiting: StillWaiting) -> list[DomainLimit]:
        """None where something else than a topology keeps it waiting."""
        local = self._kueue.queues.local_queues.get(waiting.queue)
        if waiting.why is not Wait.TOPOLOGY or local is None:
            return []
        pending = self._kueue.pending_of(local.cluster_queue)
        found = None if pending is None else pending.get(waiting.workload)
        return [] if found is None else self._limits.of(found.facts)
