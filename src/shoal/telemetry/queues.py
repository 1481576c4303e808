"""Measures queues and workloads, with Kueue's metric names.

Levels (pending workloads, usage) are read at each scrape: `queue_levels.py`. What happens to workloads is counted from
changes of their conditions, so the counts do not depend on the writer, and a restart counts
nothing twice; by cluster queue and by local queue alike. Cycles are timed by standing around them.

Kueue puts the label `replica_role` on everything: `leader`, or `standalone` without an election.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Literal

import msgspec

from shoal.engine.queues.decisions import Decisions
from shoal.prometheus.families import Values, exponential
from shoal.prometheus.registry import Registry
from shoal.telemetry.queue_levels import QueueSource, follow_levels
from shoal.telemetry.unadmitted import ROLE

WAITS = (1.0, *exponential(2.5, 2, 13))
Role = Literal["leader", "standalone"]


class WorkloadTransition(msgspec.Struct, frozen=True):
    """A change in the state of a Workload that is counted, with the values of the labels."""

    what: Literal["quota_reserved", "admitted", "evicted", "released", "preempted", "ready", "finished", "replaced"]
    cluster_queue: str
    priority_class: str = ""
    reason: str = ""
    cause: str = ""
    by: str = ""
    """The cluster queue for which it was preempted."""
    is_first: bool = False
    """Of evictions for this reason."""
    waited_s: float | None = None
    """Since it was queued, or for `finished` since it was admitted."""
    since_before_s: float | None = None
    """Since the step before: from quota to admission, from admission to readiness, from readiness to eviction, from
    eviction to the release of its quota."""
    local_queue: tuple[str, str] = ("", "")
    """Name and namespace."""


class _Counts:
    """The metrics of ClusterQueues or of LocalQueues; `own`: the labels that name the queue."""

    def __init__(self, registry: Registry, prefix: str, own: tuple[str, ...]) -> None:
        whose, why = (*own, "priority_class", ROLE), (*own, "reason", "underlying_cause", "priority_class", ROLE)
        self._totals = {
            name: registry.counter(f"kueue_{prefix}{name}_workloads_total", words, whose)
            for name, words in (
                ("quota_reserved", "Workloads that were given quota."),
                ("admitted", "Workloads that were admitted."),
                ("finished", "Workloads that finished."),
            )
        }
        self._waits = {
            name: registry.histogram(f"kueue_{prefix}{name}_time_seconds", words, WAITS, whose)
            for name, words in (
                ("quota_reserved_wait", "From being queued until quota was reserved."),
                ("admission_wait", "From being queued until admission."),
                ("admission_checks_wait", "From the reservation of quota until admission."),
                ("ready_wait", "From being queued until all pods were ready."),
                ("admitted_until_ready_wait", "From admission until all pods were ready."),
                ("execution", "From admission until the end."),
            )
        }
        self._evicted = registry.counter(f"kueue_{prefix}evicted_workloads_total", "Evictions of workloads.", why)

    def count(self, own: Values, what: WorkloadTransition, role: str) -> None:
        whose = (*own, what.priority_class, role)
        if what.what in self._totals:
            self._totals[what.what].of(*whose).inc()
        waits: tuple[tuple[str, float | None], ...] = ()
        if what.what == "quota_reserved":
            waits = (("quota_reserved_wait", what.waited_s),)
        elif what.what == "admitted":
            waits = (("admission_wait", what.waited_s), ("admission_checks_wait", what.since_before_s))
        elif what.what == "ready":
            waits = (("ready_wait", what.waited_s), ("admitted_until_ready_wait", what.since_before_s))
        elif what.what == "finished":
            waits = (("execution", what.waited_s),)
        elif what.what == "evicted":
            self._evicted.of(*own, what.reason, what.cause, what.priority_class, role).inc()
        for name, seconds in waits:
            if seconds is not None:
                self._waits[name].of(*whose).observe(max(0.0, seconds))


class QueueMetrics:
    def __init__(self, registry: Registry, role: Role, timer: Callable[[], float] = perf_counter) -> None:
        self._role = role
        self._registry = registry
        self._timer = timer
        self._above: Callable[[str], Iterable[str]] = lambda _: ()
        self._of_cluster_queues = _Counts(registry, "", ("cluster_queue",))
        self._of_local_queues = _Counts(registry, "local_queue_", ("name", "namespace"))
        self._evicted_once = registry.counter(
            "kueue_evicted_workloads_once_total",
            "Workloads that were evicted for that reason the first time.",
            ("cluster_queue", "reason", "underlying_cause", "priority_class", ROLE),
        )
        self._ready_until_evicted = registry.histogram(
            "kueue_pods_ready_to_evicted_time_seconds",
            "From the readiness of all pods until eviction.",
            WAITS,
            ("cluster_queue", "reason", "underlying_cause", ROLE),
        )
        self._until_released = registry.histogram(
            "kueue_workload_eviction_latency_seconds",
            "From eviction until quota was given back.",
            WAITS,
            ("cluster_queue", "reason", ROLE),
        )
        self._preempted = registry.counter(
            "kueue_preempted_workloads_total",
            "Workloads that were preempted, by the cluster queue that preempted them.",
            ("preempting_cluster_queue", "reason", ROLE),
        )
        self._admitted_below = registry.counter(
            "kueue_cohort_subtree_admitted_workloads_total",
            "Workloads that were admitted to queues of the cohort and below.",
            ("cohort", "priority_class", ROLE),
        )
        self._attempts = registry.counter(
            "kueue_admission_attempts_total", "Cycles of admission, by whether they admitted.", ("result", ROLE)
        )
        self._attempt_seconds = registry.histogram(
            "kueue_admission_attempt_duration_seconds",
            "How long cycles of admission took.",
            exponential(0.001, 2, 14),
            ("result", ROLE),
        )
        self._skips = registry.gauge(
            "kueue_admission_cycle_preemption_skips",
            "Workloads that were skipped in the last cycle, since others needed what their victims would have freed.",
            ("cluster_queue", ROLE),
        )
        self._replaced = registry.counter(
            "kueue_replaced_workload_slices_total",
            "Workloads whose place another one of the same work took.",
            ("cluster_queue", ROLE),
        )
        self._skipped: set[str] = set()

    def count(self, what: WorkloadTransition) -> None:
        role, queue = self._role, what.cluster_queue
        self._of_cluster_queues.count((queue,), what, role)
        if what.local_queue[0]:
            self._of_local_queues.count(what.local_queue, what, role)
        if what.what == "admitted":
            for cohort in self._above(queue):
                self._admitted_below.of(cohort, what.priority_class, role).inc()
        elif what.what == "replaced":
            self._replaced.of(queue, role).inc()
        elif what.what == "preempted":
            self._preempted.of(what.by, what.reason, role).inc()
        elif what.what == "evicted":
            if what.is_first:
                self._evicted_once.of(queue, what.reason, what.cause, what.priority_class, role).inc()
            if what.since_before_s is not None:
                self._ready_until_evicted.of(queue, what.reason, what.cause, role).observe(what.since_before_s)
        elif what.what == "released" and what.since_before_s is not None:
            self._until_released.of(queue, what.reason, role).observe(what.since_before_s)

    # -- cycles -----------------------------------------------------------------------------------------------------

    def around(self, cycle: Callable[[], Decisions]) -> Decisions:
        """Time a cycle. A cycle without a workload to consider is no attempt."""
        began_s = self._timer()
        decisions = cycle()
        if decisions.admitted or decisions.waiting:
            self._cycle_done(self._timer() - began_s, decisions)
        return decisions

    def _cycle_done(self, seconds: float, decisions: Decisions) -> None:
        result = "success" if decisions.admitted else "inadmissible"
        self._attempts.of(result, self._role).inc()
        self._attempt_seconds.of(result, self._role).observe(seconds)
        for queue in self._skipped | decisions.skips.keys():
            self._skips.of(queue, self._role).set(decisions.skips.get(queue, 0))
        self._skipped |= decisions.skips.keys()

    def follow(self, source: QueueSource) -> None:
        """The source of the levels; a later one replaces it."""
        self._above = source.above
        follow_levels(self._registry, self._role, source)
