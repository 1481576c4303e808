"""Computes the deadlines of workloads whose pods do not become ready, and when such workloads may be tried again.

Arithmetic only; the discipline decides which workloads are evicted.
"""

from __future__ import annotations

from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.settings import Settings

PODS_READY_TIMEOUT = "PodsReadyTimeout"


def ready_deadline_s(settings: Settings, facts: WorkloadFacts) -> float | None:
    """When an admitted workload whose pods are not ready has to go; None while nothing presses.

    Pods that were ready and are lost have a time of their own to come back, and any time where none is set."""
    if not settings.wait_for_pods_ready or not facts.admitted or facts.pods_ready:
        return None
    if facts.ready_lost_s is None:
        return facts.admitted_s + settings.ready_timeout_s
    return None if settings.recovery_timeout_s is None else facts.ready_lost_s + settings.recovery_timeout_s


def backoff_s(settings: Settings, requeues: int) -> float:
    """How long the n-th requeue waits: the base doubled each time, up to the most."""
    if requeues <= 0:
        return 0.0
    doublings = min(requeues - 1, 62)
    return min(settings.backoff_base_s * 2.0**doublings, settings.backoff_most_s)


def is_worn_out(settings: Settings, requeues: int) -> bool:
    """Whether it was requeued too often and is not tried again."""
    return settings.backoff_limit is not None and requeues > settings.backoff_limit


def stamp_of(settings: Settings, facts: WorkloadFacts) -> float:
    """The time that orders a pending workload. It keeps its place after a preemption, but not after an eviction that it
    caused itself."""
    if facts.evicted_s is None:
        return facts.created_s
    if facts.evicted_why == PODS_READY_TIMEOUT and settings.requeue_by == "Eviction":
        return facts.evicted_s
    if facts.evicted_why == "AdmissionCheck":
        return facts.evicted_s
    return facts.created_s
