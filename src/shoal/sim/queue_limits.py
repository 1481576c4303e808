"""Looks up what no topology domain can hold of a workload that waits for quota or for a domain."""

from __future__ import annotations

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.domain_limits import DomainLimit, DomainLimits
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait

_MAY_FIT_NEVER = frozenset({Wait.TOPOLOGY, Wait.QUOTA, Wait.EXCEEDS_MAX_QUOTA})
"""Of these a cycle has not looked for domains, or has found none."""


class QueueLimits:
    """Answers for the queues as they are; to be thrown away when they change."""

    def __init__(self, kueue: Kueue) -> None:
        self._kueue = kueue
        self._limits = DomainLimits(kueue.queues)

    def of(self, waiting: StillWaiting) -> list[DomainLimit]:
        """Empty where neither quota nor a topology keeps it waiting."""
        local = self._kueue.queues.local_queues.get(waiting.queue)
        if waiting.why not in _MAY_FIT_NEVER or local is None:
            return []
        pending = self._kueue.pending_of(local.cluster_queue)
        found = None if pending is None else pending.get(waiting.workload)
        return [] if found is None else self._limits.of(found.facts)
