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
from shoal.engine.queues.reservations import Reservations
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tree import CohortNode
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
        """Send each where it belongs; returned are the roots of trees in which a promise of a start changed."""
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
        """Back into the line, as what became of it says."""
        waiting, reported = entry.waiting, (entry.why, entry.message)
        self._backlog.report(waiting.key, reported)
        goes_on = entry.outcome is not HeadOutcome.PREEMPTING and waiting.tried is not None and waiting.tried.is_open
        match entry.outcome:
            case HeadOutcome.NAMESPACE_MISMATCH:
                pending.make_inadmissible(reported, whole_class=False)
            case HeadOutcome.PREEMPTING:
                # Once they are gone, all flavors are worth another look.
                waiting.tried = None
                pending.requeue(sticky=True)
            case HeadOutcome.RETRY:
                waiting.has_lost = True
                pending.requeue()
            case HeadOutcome.INADMISSIBLE if waiting.has_lost and entry.is_resumed and not goes_on:
                # The flavors behind do not do; those before may.
                waiting.has_lost, waiting.tried = False, None
                pending.requeue()
            case _ if goes_on and entry.assignment is not None:
                pending.requeue()
            case _ if pending.is_strict and not self._has_start(waiting.key):
                pending.requeue()
            case HeadOutcome.INADMISSIBLE_ALONE:
                pending.make_inadmissible(reported, whole_class=False)
            case _:
                pending.make_inadmissible(reported, whole_class=True)

    def _has_start(self, key: str) -> bool:
        """Whether others may go ahead without harm: its start is promised."""
        return self._reservations is not None and self._reservations.of(key) is not None


def head_positions(entries: Sequence[CycleEntry]) -> HeadPositions:
    """Who is looked at, and from which flavors on."""
    return {entry.queue.name: _place(entry.waiting) for entry in entries}


def _place(waiting: PendingWorkload) -> Hashable:
    return waiting.key, waiting.tried.place if waiting.tried is not None else (), waiting.barred
