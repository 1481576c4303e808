"""Runs the cycles of the discipline and turns each decision into status reports and kept places."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import structs

from shoal.controllers.queues.messages import cohort_path, why_not_queued
from shoal.controllers.queues.node_capacity import NodeCapacity
from shoal.controllers.queues.workload_cache import WorkloadCache
from shoal.controllers.queues.workload_status.status_reports import StatusReports
from shoal.engine.queues.decisions import Admitted, Decisions, Preempted, Stopped
from shoal.engine.queues.eviction_rules import next_deadline_s, to_stop
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.reasons import Wait

_MOST_CYCLES = 32
_MOST_REPORTS = 256
"""In one round."""
_OUTDATED_REASONS = frozenset({"Misconfigured", "Suspended"})


class AdmissionCycles:
    def __init__(self, cache: WorkloadCache, capacity: NodeCapacity, reports: StatusReports) -> None:
        self._cache = cache
        self._capacity = capacity
        self._reports = reports
        self._lacks_capacity = False
        """A Workload was refused because the nodes lack free capacity."""
        self._unplaced: dict[str, str] = {}
        """Admitted Workloads that need other topology domains, and why there are none."""
        self._deadline_s: float | None = None
        self.measure: Callable[[Callable[[], Decisions]], Decisions] = lambda cycle: cycle()
        """Runs a cycle, for code that times it."""

    def note_capacity(self, *, is_freed: bool) -> None:
        """`is_freed`: nodes may have free capacity that they did not have in the last round."""
        if is_freed and self._lacks_capacity:
            self._lacks_capacity = False
            self._cache.kueue.wake()

    def evict_due(self, now_s: float) -> None:
        """Evict Workloads for which a deadline, a stopped queue or a failed check demands it."""
        cache = self._cache
        if not cache.is_upkeep_due and (self._deadline_s is None or now_s < self._deadline_s):
            return
        cache.is_upkeep_due = False
        for stopped in list(to_stop(cache.queues, now_s)):
            self._evict(stopped, now_s)
        self._deadline_s = next_deadline_s(cache.queues)

    def run(self, now_s: float) -> None:
        cache = self._cache
        prover = self._capacity.prover
        for _ in range(_MOST_CYCLES):
            due_s = cache.kueue.next_s()
            if cache.kueue.is_idle and not cache.is_cycle_due and (due_s is None or due_s > now_s):
                break
            cache.is_cycle_due = False
            self._apply(self.measure(partial(cache.kueue.cycle, now_s, prover)), now_s)

    def report_pending(self) -> None:
        """Report why Workloads are pending that no cycle considered: they are in no queue, or behind other Workloads
        with the same requests."""
        cache = self._cache
        for key in list(cache.unreported)[:_MOST_REPORTS]:
            del cache.unreported[key]
            view = cache.views.get(key)
            if view is None or view.facts is None or view.facts.admission is not None:
                continue
            if cache.held(key) is not None or cache.is_outdated(key):
                continue
            reason_and_message = why_not_queued(cache.queues, view.facts) or self._why_queued(view.facts)
            if reason_and_message is not None:
                self._reports.pending(view, view.facts, reason_and_message)

    def moments(self) -> list[float | None]:
        return [self._cache.kueue.next_s(), self._deadline_s]

    # internals

    def _evict(self, stopped: Stopped, now_s: float) -> None:
        cache = self._cache
        held, view = cache.queues.held[stopped.workload], cache.views.get(stopped.workload)
        if view is None or cache.is_outdated(held.key):
            return
        self._reports.stopped(view, held.facts, stopped)
        if held.facts.active and stopped.deactivate:
            # The eviction follows once `spec.active` is false; one report is enough until then.
            return
        held.evicted = True
        held.facts = structs.replace(held.facts, evicted_s=now_s, evicted_why=stopped.reason)
        self._capacity.placeholders.drop(held.key)

    def _apply(self, decisions: Decisions, now_s: float) -> None:
        cache = self._cache
        self._capacity.keep_proven()
        for admitted in decisions.admitted:
            self._admit(admitted, now_s)
        for preempted in decisions.preempted:
            self._preempt(preempted)
        for stopped in decisions.stopped:
            view, held = cache.views.get(stopped.workload), cache.held(stopped.workload)
            if view is not None and held is not None:
                self._reports.stopped(view, held.facts, stopped)
                self._capacity.placeholders.drop(stopped.workload)
        self._report_unplaced(decisions)
        for waiting in decisions.waiting:
            view = cache.views.get(waiting.workload)
            if view is not None:
                cache.unreported.pop(waiting.workload, None)
                self._lacks_capacity = self._lacks_capacity or waiting.why in (Wait.TOPOLOGY, Wait.VICTIMS)
                self._reports.pending(view, view.facts, (str(waiting.why), waiting.message))

    def _report_unplaced(self, decisions: Decisions) -> None:
        """Each reason is reported once while it lasts."""
        for key, why in decisions.unplaced.items():
            view = self._cache.views.get(key)
            if view is not None and self._unplaced.get(key) != why:
                self._reports.unplaced(view, why)
        held = self._cache.queues.held
        placed = {admitted.workload for admitted in decisions.admitted}
        known = {**self._unplaced, **decisions.unplaced}
        self._unplaced = {key: why for key, why in known.items() if key in held and key not in placed}

    def _admit(self, decision: Admitted, now_s: float) -> None:
        view, held = self._cache.views.get(decision.workload), self._cache.held(decision.workload)
        self._cache.unreported.pop(decision.workload, None)
        if not decision.again:
            self._capacity.arrivals.end_admission(decision.workload)
        if held is not None and self._cache.queues.replacements.has_place(held.facts):
            self._capacity.arrivals.replace(held.facts.replaces, held.key)
        if view is not None and held is not None:
            self._reports.admitted(view, held, decision, now_s)

    def _preempt(self, decision: Preempted) -> None:
        cache = self._cache
        view, held = cache.views.get(decision.workload), cache.held(decision.workload)
        if view is None or held is None:
            return
        preemptor = cache.views.get(decision.beneficiary)
        local = cache.queues.local_queues.get(preemptor.queue) if preemptor is not None else None
        queue = cache.queues.cluster_queues.get(local.cluster_queue) if local is not None else None
        self._reports.preempted(view, decision, (cohort_path(queue), cohort_path(held.queue)))
        if preemptor is not None:
            self._reports.preempted_other(preemptor, view, held.queue.name)
        self._capacity.placeholders.drop(decision.workload)

    def _why_queued(self, facts: WorkloadFacts) -> tuple[str, str] | None:
        if over_budget := self._cache.kueue.over_budget(facts.key):
            return str(Wait.OVER_BUDGET), over_budget
        known = self._cache.kueue.reported_of(facts.key)
        if known is not None:
            return str(known[0]), known[1]
        view = self._cache.views[facts.key]
        if "QuotaReserved" in view.marks and view.mark("QuotaReserved").reason not in _OUTDATED_REASONS:
            return None
        return str(Wait.PENDING), "Workload is pending evaluation in the scheduling queue"
