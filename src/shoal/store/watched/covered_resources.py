"""Tracks whether a cluster queue counts GPUs in parts, the only fact of it that changes a workload's usage.

A local queue has the resources that its cluster queue covers, listed only if the cluster queue counts GPUs in parts.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES
from shoal.client.kind import Kind
from shoal.engine.from_api.queues import GPU_MILLI
from shoal.engine.queues.facts import ClusterQueueFacts, LocalQueueFacts
from shoal.engine.queues.state import Fact

_NOTHING: frozenset[str] = frozenset()


class CoveredResources:
    def __init__(self) -> None:
        self._covered: dict[str, frozenset[str]] = {}
        """By cluster queue, for those that count GPUs in parts."""
        self._leads_to: dict[str, str] = {}
        self._local_queues: dict[str, frozenset[str]] = {}

    @property
    def all(self) -> Mapping[str, frozenset[str]]:
        """By local queue; updated in place while others read it."""
        return self._local_queues

    def put(self, kind: Kind, name: str, fact: Fact | None) -> list[str]:
        """Apply a changed or deleted fact of any kind; returns the local queues whose resources changed."""
        if kind is CLUSTER_QUEUES:
            return self._put_cluster_queue(name, fact if isinstance(fact, ClusterQueueFacts) else None)
        if kind is LOCAL_QUEUES:
            return self._put_local_queue(name, fact.cluster_queue if isinstance(fact, LocalQueueFacts) else "")
        return []

    # internals

    def _put_cluster_queue(self, name: str, facts: ClusterQueueFacts | None) -> list[str]:
        covered = _covered(facts) if facts is not None else _NOTHING
        if covered == self._covered.get(name, _NOTHING):
            return []
        self._covered[name] = covered
        return [
            local_queue
            for local_queue, queue in self._leads_to.items()
            if queue == name and self._set(local_queue, covered)
        ]

    def _put_local_queue(self, local_queue: str, cluster_queue: str) -> list[str]:
        self._leads_to[local_queue] = cluster_queue
        return [local_queue] if self._set(local_queue, self._covered.get(cluster_queue, _NOTHING)) else []

    def _set(self, local_queue: str, covered: frozenset[str]) -> bool:
        if self._local_queues.get(local_queue, _NOTHING) == covered:
            return False
        self._local_queues[local_queue] = covered
        return True


def _covered(facts: ClusterQueueFacts) -> frozenset[str]:
    names = frozenset(name for group in facts.groups for name in group.resources)
    return names if GPU_MILLI in names else _NOTHING
