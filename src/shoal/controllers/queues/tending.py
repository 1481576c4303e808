"""What a workload needs beside decisions: checks that stand in its status, the word that it may be tried again, the end
of whoever is switched off."""

from __future__ import annotations

from heapq import heappop, heappush

from shoal.controllers.queues.telling import Telling
from shoal.controllers.queues.words import DEACTIVATED, required_checks
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.state import Queues
from shoal.store.watched.queue_news import WorkloadSight

_BACKED_OFF = frozenset({"PodsReadyTimeout", "AdmissionCheck"})


class Tending:
    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._later: list[tuple[float, str]] = []
        self._backoffs: dict[str, float] = {}

    def tend(self, queues: Queues, sight: WorkloadSight, facts: WorkloadFacts, now_s: float) -> bool:
        """Whether it is admitted by this: all its checks have said yes."""
        evicted = sight.mark("Evicted")
        if not facts.active:
            if not evicted.is_true and facts.key not in queues.held:
                self._telling.deactivated(sight)
            return False
        self._requeue(queues, sight, facts, now_s)
        held = queues.held.get(sight.key)
        if held is None or held.evicted or facts.admission is None or facts.admitted:
            return False
        names = required_checks(held)
        if set(names) != set(facts.checks):
            self._telling.checks_listed(sight, names)
            return False
        is_delayed = any(each.delayed == "Pending" for each in held.admission.pod_sets)
        if is_delayed or any(state != "Ready" for state in facts.checks.values()):
            return False
        self._telling.checks_passed(sight, held, now_s)
        return True

    def due(self, now_s: float) -> list[str]:
        """Those whose backoff has ended."""
        found = []
        while self._later and self._later[0][0] <= now_s:
            moment_s, key = heappop(self._later)
            if self._backoffs.get(key) == moment_s:
                del self._backoffs[key]
                found.append(key)
        return found

    def next_s(self) -> float | None:
        return self._later[0][0] if self._later else None

    def forget(self, key: str) -> None:
        self._backoffs.pop(key, None)

    # Inside

    def _requeue(self, queues: Queues, sight: WorkloadSight, facts: WorkloadFacts, now_s: float) -> None:
        mark = sight.mark("Requeued")
        if "Requeued" not in sight.marks or mark.is_true:
            return
        local = queues.local_queues.get(facts.queue)
        queue = queues.cluster_queues.get(local.cluster_queue) if local is not None else None
        if mark.reason.startswith(DEACTIVATED):
            self._telling.requeued(sight, "Reactivated", "The workload was reactivated")
        elif mark.reason in _BACKED_OFF:
            if facts.requeue_at_s <= now_s:
                self._telling.requeued(sight, "BackoffFinished", "The workload backoff was finished")
            elif self._backoffs.get(sight.key) != facts.requeue_at_s:
                self._backoffs[sight.key] = facts.requeue_at_s
                heappush(self._later, (facts.requeue_at_s, sight.key))
        elif mark.reason == "LocalQueueStopped" and local is not None and local.stop == "None":
            words = "The LocalQueue was restarted after being stopped"
            self._telling.requeued(sight, "LocalQueueRestarted", words)
        elif mark.reason == "ClusterQueueStopped" and queue is not None and queue.facts.stop == "None":
            words = "The ClusterQueue was restarted after being stopped"
            self._telling.requeued(sight, "ClusterQueueRestarted", words)
