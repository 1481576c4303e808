"""Reports decisions of the discipline on Workloads: as status changes with Events, in Kueue's wording."""

from __future__ import annotations

from functools import partial

from shoal.api.kueue import Workload
from shoal.controllers.queues.messages import (
    ADMISSION_CHECK,
    PREEMPTED,
    TOO_LONG,
    TOO_OFTEN,
    checks_in,
    checks_in_state,
    deactivated,
    preempted,
    required_checks,
    stopped,
)
from shoal.controllers.queues.workload_status.status_changes import (
    Eviction,
    admit,
    evict,
    mark_for_deactivation,
    replace_domains,
    requeue,
    reserve,
    set_checks,
    set_pending,
    set_unhealthy_nodes,
)
from shoal.controllers.queues.workload_status.status_writer import EventRecord, StatusChange, StatusWriter
from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.decisions import Admitted, Preempted, Stopped
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.workloads import totals_of
from shoal.store.queues.made import JOB_UID_LABEL
from shoal.store.watched.queue_changes import Mark, WorkloadView
from shoal.store.watched.queues import WatchedQueues


class StatusReports:
    def __init__(self, writer: StatusWriter, watched: WatchedQueues) -> None:
        self._writer = writer
        self._watched = watched

    # -- admission ---------------------------------------------------------------------------------------------

    def admitted(self, view: WorkloadView, held: AdmittedWorkload, decision: Admitted, now_s: float) -> None:
        queue = decision.admission.cluster_queue
        done = EventRecord("Admitted", f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s")
        if decision.again:
            change = partial(replace_domains, admission=decision.admission)
            self._writer.write(
                view.key, StatusChange(view.uid, lambda status, moment: change(status, moment=moment), (done,))
            )
            return
        names = required_checks(held)
        since_s = view.mark("Evicted").since_s or held.facts.created_s
        waited = f"wait time since queued was {max(0.0, now_s - since_s):.0f}s"
        events: tuple[EventRecord, ...] = (
            EventRecord("QuotaReserved", f"Quota reserved in ClusterQueue {queue}, {waited}"),
        )
        if not decision.checks_pending:
            events = (*events, done)
        self._writer.write(
            view.key,
            StatusChange(
                view.uid,
                lambda status, moment: reserve(status, decision.admission, names, moment),
                events,
                generation=view.generation,
            ),
        )

    def checks_passed(self, view: WorkloadView, held: AdmittedWorkload, now_s: float) -> None:
        waited = f"wait time since reservation was {max(0.0, now_s - held.facts.reserved_s):.0f}s"
        event = EventRecord("Admitted", f"Admitted by ClusterQueue {held.queue.name}, {waited}")
        self._writer.write(view.key, StatusChange(view.uid, admit, (event,)))

    def checks_listed(self, view: WorkloadView, names: tuple[str, ...]) -> None:
        change = StatusChange(view.uid, lambda status, moment: set_checks(status, names, moment))
        self._writer.write(view.key, change)

    def pending(self, view: WorkloadView, facts: WorkloadFacts | None, reason_and_message: tuple[str, str]) -> None:
        """Does nothing if the condition already says so."""
        mark = view.mark("QuotaReserved")
        present = Mark(False, *reason_and_message, mark.since_s)
        if view.is_finished or ("QuotaReserved" in view.marks and mark == present):
            return
        sets = () if facts is None else tuple((each.pod_set, each.count) for each in totals_of(facts))
        events = (EventRecord(*reason_and_message, "Warning"),) if reason_and_message[1] else ()
        change = StatusChange(
            view.uid,
            lambda status, moment: set_pending(status, reason_and_message, sets, moment),
            events,
            is_decision=False,
        )
        self._writer.write(view.key, change)

    # -- the end of an admission -------------------------------------------------------------------------------

    def preempted(self, view: WorkloadView, decision: Preempted, paths: tuple[str, str]) -> None:
        found = self._watched.view(decision.beneficiary)
        uid = found.uid if found is not None else ""
        message = preempted(uid, _job_uid(self._watched.workload(decision.beneficiary)), decision.reason, paths)
        reason = str(decision.reason)
        eviction = Eviction(PREEMPTED, message, cause=reason, preempted_for=reason)
        self._evict(view, eviction, EventRecord("Preempted", message))

    def preempted_other(self, beneficiary: WorkloadView, victim: WorkloadView, queue: str) -> None:
        """An Event on the preemptor."""
        own, other = (one.facts.priority if one.facts is not None else 0 for one in (beneficiary, victim))
        message = f"Preempted workload {victim.key} (UID: {victim.uid}) in ClusterQueue {queue}"
        priorities = (
            f"preemptor effective priority: {own} (base: {own}, boost: 0); "
            f"preemptee effective priority: {other} (base: {other}, boost: 0)"
        )
        self._writer.record(beneficiary.key, EventRecord("PreemptedWorkload", f"{message}; {priorities}"))

    def unplaced(self, view: WorkloadView, why: str) -> None:
        self._writer.record(view.key, EventRecord("SecondPassFailed", why, "Warning"))

    def stopped(self, view: WorkloadView, facts: WorkloadFacts, decision: Stopped) -> None:
        if decision.deactivate and facts.active:
            self._deactivate(view, facts, decision)
            return
        if not facts.active:
            self.deactivated(view)
            return
        message = decision.message if decision.reason == "NodeFailures" else stopped(decision.reason, facts)
        cause = ""
        if decision.reason == "PodsReadyTimeout":
            cause = "WaitForStart" if facts.ready_lost_s is None else "WaitForRecovery"
        eviction = Eviction(
            decision.reason, message, cause, decision.requeues or None, requeue_at_s=decision.requeue_at_s
        )
        self._evict(view, eviction)

    def deactivated(self, view: WorkloadView) -> None:
        """The Workload was deactivated: by a user, or by Shoal for the cause in its DeactivationTarget condition."""
        mark = view.mark("DeactivationTarget")
        cause = mark.reason if mark.is_true else ""
        reason, message = deactivated(cause, mark.message)
        self._evict(view, Eviction(reason, message, cause, resets_requeues=True))

    def nodes_failed(self, view: WorkloadView, nodes: tuple[str, ...]) -> None:
        """`nodes` are all nodes that have failed now; nodes that recovered are removed from the status."""
        change = StatusChange(view.uid, lambda status, _: set_unhealthy_nodes(status, nodes))
        self._writer.write(view.key, change)

    # -- requeueing --------------------------------------------------------------------------------------------

    def requeued(self, view: WorkloadView, reason: str, message: str) -> None:
        change = StatusChange(view.uid, lambda status, moment: requeue(status, (reason, message), moment))
        self._writer.write(view.key, change)

    def places_dropped(self, view: WorkloadView, count: int, after_s: float) -> None:
        message = f"Places for {count} pod(s) were released: the pods were not created within {after_s:.0f} s"
        self._writer.record(view.key, EventRecord("PlacesReleased", message, "Warning"))

    # internals

    def _evict(self, view: WorkloadView, eviction: Eviction, *extra: EventRecord) -> None:
        events = (EventRecord(f"EvictedDueTo{eviction.reason}", eviction.message), *extra)
        self._writer.write(
            view.key, StatusChange(view.uid, lambda status, moment: evict(status, eviction, moment), events)
        )

    def _deactivate(self, view: WorkloadView, facts: WorkloadFacts, decision: Stopped) -> None:
        refused = checks_in_state(facts.checks, "Rejected")
        events: tuple[EventRecord, ...] = ()
        if refused:
            message = checks_in("Rejected", refused)
            cause = (ADMISSION_CHECK, message)
            events = (EventRecord("AdmissionCheckRejected", f"Deactivated due to {message}", "Warning"),)
        else:
            cause = TOO_OFTEN if decision.requeues else TOO_LONG
        change = StatusChange(
            view.uid, lambda status, moment: mark_for_deactivation(status, cause, moment), events, deactivates=True
        )
        self._writer.write(view.key, change)


def _job_uid(workload: Workload | None) -> str:
    return "" if workload is None else workload.metadata.labels.get(JOB_UID_LABEL, "")
