"""Evictions without a preemptor: drained queues, rejected checks, pods that do not become ready, exceeded execution
times.

Decided apart from the cycles: a world may run them at different times, and a cycle must not depend on the clock more
than it has to.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.decisions import Stopped
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.readiness import PODS_READY_TIMEOUT, backoff_s, is_worn_out, ready_deadline_s
from shoal.engine.queues.state import Queues

_CHECK = "AdmissionCheck"


def to_stop(queues: Queues, now_s: float) -> Iterator[Stopped]:
    """Every workload that holds quota and must not any longer."""
    for held in queues.held.values():
        if not held.evicted:
            found = _why(queues, held, now_s)
            if found is not None:
                yield found


def next_deadline_s(queues: Queues) -> float | None:
    """When the next of them has to stop for taking too long."""
    deadlines = (
        deadline
        for held in queues.held.values()
        if not held.evicted
        for deadline in (ready_deadline_s(queues.settings, held.facts), _run_deadline_s(held.facts))
    )
    return min((each for each in deadlines if each is not None), default=None)


def _run_deadline_s(facts: WorkloadFacts) -> float | None:
    """When it has run for as long as it may, earlier admissions included."""
    return facts.admitted_s + facts.left_s if facts.admitted and facts.left_s is not None else None


def _why(queues: Queues, held: AdmittedWorkload, now_s: float) -> Stopped | None:
    facts = held.facts
    if not facts.active:
        return Stopped(held.key, "Deactivated", "The workload is deactivated", deactivate=True)
    run_deadline_s = _run_deadline_s(facts)
    if run_deadline_s is not None and now_s >= run_deadline_s:
        message = f"MaximumExecutionTimeExceeded: it has run for the {facts.longest_s:,.0f} s that it may"
        return Stopped(held.key, "Deactivated", message, deactivate=True)
    if held.queue.facts.stop == "HoldAndDrain":
        return Stopped(held.key, "ClusterQueueStopped", f"ClusterQueue {held.queue.name} is stopped")
    local = queues.local_queues.get(facts.queue)
    if local is not None and local.stop == "HoldAndDrain":
        return Stopped(held.key, "LocalQueueStopped", f"LocalQueue {local.key} is stopped")
    refused = [name for name, state in sorted(facts.checks.items()) if state == "Rejected"]
    if refused:
        return Stopped(held.key, "Deactivated", f"Admission check {', '.join(refused)} was rejected", deactivate=True)
    retry = [name for name, state in sorted(facts.checks.items()) if state == "Retry"]
    if retry:
        return Stopped(held.key, _CHECK, f"Admission check {', '.join(retry)} asks for a retry")
    return _overdue(queues, held, now_s)


def _overdue(queues: Queues, held: AdmittedWorkload, now_s: float) -> Stopped | None:
    settings = queues.settings
    deadline = ready_deadline_s(settings, held.facts)
    if deadline is None or now_s < deadline:
        return None
    requeues = held.facts.requeues + 1
    if is_worn_out(settings, requeues):
        message = f"Its pods were not ready in time {requeues} times, which is the limit"
        return Stopped(held.key, "Deactivated", message, requeues=requeues, deactivate=True)
    message = f"Exceeded the PodsReady timeout {held.facts.key}"
    return Stopped(held.key, PODS_READY_TIMEOUT, message, now_s + backoff_s(settings, requeues), requeues)
