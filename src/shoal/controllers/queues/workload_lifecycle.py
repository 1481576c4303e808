"""Follows the lifecycle of a Workload apart from cycles: admission checks in its status, requeueing after a backoff or
a restarted queue, and the eviction of a Workload that was deactivated."""

from __future__ import annotations

from heapq import heappop, heappush

from shoal.controllers.queues.messages import DEACTIVATED, required_checks
from shoal.controllers.queues.workload_status.status_reports import StatusReports
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.state import Queues
from shoal.store.watched.queue_changes import WorkloadView

_BACKED_OFF = frozenset({"PodsReadyTimeout", "AdmissionCheck"})


class WorkloadLifecycle:
    def __init__(self, reports: StatusReports) -> None:
        self._reports = reports
        self._later: list[tuple[float, str]] = []
        self._backoffs: dict[str, float] = {}

    def reconcile(self, queues: Queues, view: WorkloadView, facts: WorkloadFacts, now_s: float) -> bool:
        """Returns whether this admitted the Workload: all its checks are ready."""
        evicted = view.mark("Evicted")
        if not facts.active:
            if not evicted.is_true and facts.key not in queues.held:
                self._reports.deactivated(view)
            return False
        self._requeue(queues, view, facts, now_s)
        held = queues.held.get(view.key)
        if held is None or held.evicted or facts.admission is None or facts.admitted:
            return False
        names = required_checks(held)
        if set(names) != set(facts.checks):
            self._reports.checks_listed(view, names)
            return False
        is_delayed = any(each.delayed == "Pending" for each in held.admission.pod_sets)
        if is_delayed or any(state != "Ready" for state in facts.checks.values()):
            return False
        self._reports.checks_passed(view, held, now_s)
        return True

    def due(self, now_s: float) -> list[str]:
        """The Workloads whose backoff has ended."""
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

    # internals

    def _requeue(self, queues: Queues, view: WorkloadView, facts: WorkloadFacts, now_s: float) -> None:
        mark = view.mark("Requeued")
        if "Requeued" not in view.marks or mark.is_true:
            return
        local = queues.local_queues.get(facts.queue)
        queue = queues.cluster_queues.get(local.cluster_queue) if local is not None else None
        if mark.reason.startswith(DEACTIVATED):
            self._reports.requeued(view, "Reactivated", "The workload was reactivated")
        elif mark.reason in _BACKED_OFF:
            if facts.requeue_at_s <= now_s:
                self._reports.requeued(view, "BackoffFinished", "The workload backoff was finished")
            elif self._backoffs.get(view.key) != facts.requeue_at_s:
                self._backoffs[view.key] = facts.requeue_at_s
                heappush(self._later, (facts.requeue_at_s, view.key))
        elif mark.reason == "LocalQueueStopped" and local is not None and local.stop == "None":
            message = "The LocalQueue was restarted after being stopped"
            self._reports.requeued(view, "LocalQueueRestarted", message)
        elif mark.reason == "ClusterQueueStopped" and queue is not None and queue.facts.stop == "None":
            message = "The ClusterQueue was restarted after being stopped"
            self._reports.requeued(view, "ClusterQueueRestarted", message)
