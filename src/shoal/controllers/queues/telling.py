"""What the desk decided, as changes of Workloads with their Events: from the engine's values to Kueue's words."""

from __future__ import annotations

from functools import partial

from shoal.api.kueue import Workload
from shoal.controllers.queues.pen import Change, Pen, Said
from shoal.controllers.queues.statuses import (
    Eviction,
    admit,
    evict,
    list_checks,
    name_failed,
    place_anew,
    requeue,
    reserve,
    target,
    wait,
)
from shoal.controllers.queues.words import (
    ADMISSION_CHECK,
    PREEMPTED,
    TOO_LONG,
    TOO_OFTEN,
    checks_in,
    deactivated,
    in_state,
    preempted,
    required_checks,
    stopped,
)
from shoal.engine.queues.decisions import Admitted, Preempted, Stopped
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.held import Held, totals_of
from shoal.store.queues.made import JOB_UID_LABEL
from shoal.store.watched.queue_news import Mark, WorkloadSight
from shoal.store.watched.queues import WatchedQueues


class Telling:
    def __init__(self, pen: Pen, watched: WatchedQueues) -> None:
        self._pen = pen
        self._watched = watched

    # -- admission ---------------------------------------------------------------------------------------------

    def admitted(self, sight: WorkloadSight, held: Held, decision: Admitted, now_s: float) -> None:
        queue = decision.admission.cluster_queue
        done = Said("Admitted", f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s")
        if decision.again:
            change = partial(place_anew, admission=decision.admission)
            self._pen.write(sight.key, Change(sight.uid, lambda status, moment: change(status, moment=moment), (done,)))
            return
        names = required_checks(held)
        since_s = sight.mark("Evicted").since_s or held.facts.created_s
        waited = f"wait time since queued was {max(0.0, now_s - since_s):.0f}s"
        said: tuple[Said, ...] = (Said("QuotaReserved", f"Quota reserved in ClusterQueue {queue}, {waited}"),)
        if not decision.checks_pending:
            said = (*said, done)
        self._pen.write(
            sight.key,
            Change(
                sight.uid,
                lambda status, moment: reserve(status, decision.admission, names, moment),
                said,
                generation=sight.generation,
            ),
        )

    def checks_passed(self, sight: WorkloadSight, held: Held, now_s: float) -> None:
        waited = f"wait time since reservation was {max(0.0, now_s - held.facts.reserved_s):.0f}s"
        said = Said("Admitted", f"Admitted by ClusterQueue {held.queue.name}, {waited}")
        self._pen.write(sight.key, Change(sight.uid, admit, (said,)))

    def checks_listed(self, sight: WorkloadSight, names: tuple[str, ...]) -> None:
        change = Change(sight.uid, lambda status, moment: list_checks(status, names, moment))
        self._pen.write(sight.key, change)

    def waits(self, sight: WorkloadSight, facts: WorkloadFacts | None, told: tuple[str, str]) -> None:
        """Nothing is written that stands there already."""
        mark = sight.mark("QuotaReserved")
        if sight.is_finished or ("QuotaReserved" in sight.marks and mark == Mark(False, *told, mark.since_s)):
            return
        sets = () if facts is None else tuple((each.pod_set, each.count) for each in totals_of(facts))
        said = (Said(told[0], told[1], "Warning"),) if told[1] else ()
        change = Change(sight.uid, lambda status, moment: wait(status, told, sets, moment), said, is_decision=False)
        self._pen.write(sight.key, change)

    # -- the end of an admission -------------------------------------------------------------------------------

    def preempted(self, sight: WorkloadSight, decision: Preempted, paths: tuple[str, str]) -> None:
        found = self._watched.sight(decision.beneficiary)
        uid = found.uid if found is not None else ""
        message = preempted(uid, _job_uid(self._watched.workload(decision.beneficiary)), decision.reason, paths)
        reason = str(decision.reason)
        eviction = Eviction(PREEMPTED, message, cause=reason, preempted_for=reason)
        self._evict(sight, eviction, Said("Preempted", message))

    def made_room(self, beneficiary: WorkloadSight, victim: WorkloadSight, queue: str) -> None:
        """To whom others yield."""
        own, other = (one.facts.priority if one.facts is not None else 0 for one in (beneficiary, victim))
        words = f"Preempted workload {victim.key} (UID: {victim.uid}) in ClusterQueue {queue}"
        ranks = (
            f"preemptor effective priority: {own} (base: {own}, boost: 0); "
            f"preemptee effective priority: {other} (base: {other}, boost: 0)"
        )
        self._pen.say(beneficiary.key, Said("PreemptedWorkload", f"{words}; {ranks}"))

    def unplaced(self, sight: WorkloadSight, why: str) -> None:
        self._pen.say(sight.key, Said("SecondPassFailed", why, "Warning"))

    def stopped(self, sight: WorkloadSight, facts: WorkloadFacts, decision: Stopped) -> None:
        if decision.deactivate and facts.active:
            self._switch_off(sight, facts, decision)
            return
        if not facts.active:
            self.deactivated(sight)
            return
        message = decision.message if decision.reason == "NodeFailures" else stopped(decision.reason, facts)
        cause = ""
        if decision.reason == "PodsReadyTimeout":
            cause = "WaitForStart" if facts.ready_lost_s is None else "WaitForRecovery"
        eviction = Eviction(
            decision.reason, message, cause, decision.requeues or None, requeue_at_s=decision.requeue_at_s
        )
        self._evict(sight, eviction)

    def deactivated(self, sight: WorkloadSight) -> None:
        """Somebody switched it off, or we did for a cause."""
        mark = sight.mark("DeactivationTarget")
        cause = mark.reason if mark.is_true else ""
        reason, message = deactivated(cause, mark.message)
        self._evict(sight, Eviction(reason, message, cause, forgets=True))

    def nodes_failed(self, sight: WorkloadSight, nodes: tuple[str, ...]) -> None:
        """And which of those that had failed are well again: they are not named."""
        change = Change(sight.uid, lambda status, _: name_failed(status, nodes))
        self._pen.write(sight.key, change)

    # -- back in line ------------------------------------------------------------------------------------------

    def requeued(self, sight: WorkloadSight, reason: str, message: str) -> None:
        change = Change(sight.uid, lambda status, moment: requeue(status, (reason, message), moment))
        self._pen.write(sight.key, change)

    def places_dropped(self, sight: WorkloadSight, count: int, after_s: float) -> None:
        words = f"Places for {count} pod(s) are not kept any longer: the pods did not come within {after_s:.0f} s"
        self._pen.say(sight.key, Said("PlacesReleased", words, "Warning"))

    # Inside

    def _evict(self, sight: WorkloadSight, eviction: Eviction, *more: Said) -> None:
        said = (Said(f"EvictedDueTo{eviction.reason}", eviction.message), *more)
        self._pen.write(sight.key, Change(sight.uid, lambda status, moment: evict(status, eviction, moment), said))

    def _switch_off(self, sight: WorkloadSight, facts: WorkloadFacts, decision: Stopped) -> None:
        refused = in_state(facts.checks, "Rejected")
        said: tuple[Said, ...] = ()
        if refused:
            words = checks_in("Rejected", refused)
            cause = (ADMISSION_CHECK, words)
            said = (Said("AdmissionCheckRejected", f"Deactivated due to {words}", "Warning"),)
        else:
            cause = TOO_OFTEN if decision.requeues else TOO_LONG
        change = Change(sight.uid, lambda status, moment: target(status, cause, moment), said, switches_off=True)
        self._pen.write(sight.key, change)


def _job_uid(workload: Workload | None) -> str:
    return "" if workload is None else workload.metadata.labels.get(JOB_UID_LABEL, "")
