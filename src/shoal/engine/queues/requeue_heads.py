"""Requeues the heads of a cycle after it has decided: removed when admitted, pending again, or inadmissible.

A head that is requeued keeps its position. A tree in which nothing changed becomes quiescent (`quiescence.py`).
Searches over flavors that repeat without end are stopped: their workloads become inadmissible until an event.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from shoal.engine.queues.admission_cycle import AdmissionCycle
from shoal.engine.queues.backlog import Backlog
from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.entry import STATES_AFTER, CycleEntry, HeadOutcome, PendingState
from shoal.engine.queues.pending_workloads import PendingWorkloads
from shoal.engine.queues.quiescence import ActiveTrees, HeadPositions
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.reservations import Reservations
from shoal.engine.queues.state import Queues
from shoal.engine.queues.workloads import PendingWorkload
from shoal.units.errors import BugError


class Requeuing:
    def __init__(self, queues: Queues, backlog: Backlog, watch: ActiveTrees, reservations: Reservations | None) -> None:
        self._queues = queues
        self._backlog = backlog
        self._active_trees = watch
        self._reservations = reservations

    def end_cycle(
        self, entries: Sequence[CycleEntry], before: HeadPositions, cycle: AdmissionCycle, now_s: float
    ) -> list[CohortNode]:
        """Requeue each head by its outcome; returns the roots of trees in which a reserved start changed."""
        changed: list[CohortNode] = []
        if self._reservations is not None:
            refused = [entry for entry in entries if entry.outcome is HeadOutcome.INADMISSIBLE]
            changed = self._reservations.renew(refused, now_s, self._backlog.queue_of)
        news = [entry.queue.name for entry in entries if self._is_news(entry, cycle)]
        news += [queue.name for root in cycle.touched for queue in self._queues.leaves_of(root)]
        unresolved = self._active_trees.end_cycle(news, before, head_positions(entries))
        for entry in entries:
            pending = self._backlog.pending_of(entry.queue.name)
            if pending is not None and entry.queue.name in unresolved and not pending.is_strict:
                # It would search for ever, and those behind it would never be looked at.
                pending.make_requeued_inadmissible(entry.waiting.key, (entry.why, entry.message))
                self._active_trees.add(entry.queue.name)
        return changed

    def _is_news(self, entry: CycleEntry, cycle: AdmissionCycle) -> bool:
        """Send the head where it belongs; whether it is not where it was."""
        key, pending = entry.waiting.key, self._backlog.pending_of(entry.queue.name)
        if entry.outcome is HeadOutcome.ADMITTED or pending is None:
            self._backlog.admitted(key)
            return True
        self._return(entry, pending)
        is_active = pending.is_active(key)
        state: PendingState = "active" if is_active else "inadmissible"
        if state not in STATES_AFTER[entry.outcome]:
            raise BugError(f"workload {key} is {state} after the outcome {entry.outcome}")
        cycle.decisions.waiting.append(StillWaiting(key, entry.waiting.facts.queue, state, entry.why, entry.message))
        return not is_active

    def _return(self, entry: CycleEntry, pending: PendingWorkloads) -> None:
        """Return the head to its queue, by its outcome."""
        waiting, reported = entry.waiting, (entry.why, entry.message)
        self._backlog.report(waiting.key, reported)
        search_continues = (
            entry.outcome is not HeadOutcome.PREEMPTING and waiting.tried is not None and waiting.tried.is_open
        )
        match entry.outcome:
            case HeadOutcome.NAMESPACE_MISMATCH:
                pending.make_inadmissible(reported, whole_class=False)
            case HeadOutcome.PREEMPTING:
                # Once the victims have stopped, all flavors are tried again.
                waiting.tried = None
                pending.requeue(sticky=True)
            case HeadOutcome.RETRY:
                waiting.is_retry = True
                pending.requeue()
            case HeadOutcome.INADMISSIBLE if waiting.is_retry and entry.is_resumed and not search_continues:
                # The later flavors do not suffice; the earlier ones may.
                waiting.is_retry, waiting.tried = False, None
                pending.requeue()
            case _ if search_continues and entry.assignment is not None:
                pending.requeue()
            case _ if pending.is_strict and not self._has_start(waiting.key):
                pending.requeue()
            case HeadOutcome.INADMISSIBLE_ALONE:
                pending.make_inadmissible(reported, whole_class=False)
            case _:
                pending.make_inadmissible(reported, whole_class=True)

    def _has_start(self, key: str) -> bool:
        """Whether its start is reserved, so that later workloads may be admitted before it."""
        return self._reservations is not None and self._reservations.of(key) is not None


def head_positions(entries: Sequence[CycleEntry]) -> HeadPositions:
    """The heads of a cycle by queue, each with the flavor from which its search resumes."""
    return {entry.queue.name: _place(entry.waiting) for entry in entries}


def _place(waiting: PendingWorkload) -> Hashable:
    return waiting.key, waiting.tried.place if waiting.tried is not None else (), waiting.barred
