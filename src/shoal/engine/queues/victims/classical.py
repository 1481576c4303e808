"""Selects victims by classical preemption: candidates in order until the workload fits, then without those not needed.

A candidate is passed over once its queue, or a cohort between it and the common one, is back within its quota: no queue
loses its own quota.

Rejected: the cheapest set of victims. Who yields must be plain from the order, and stay the same when an unrelated
workload changes its size.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.queues.victims.candidates import attempts, classical_sources, could_suffice, is_above_nominal
from shoal.engine.queues.victims.order import OWN, Asked, in_order
from shoal.engine.queues.victims.preemption_request import Victim
from shoal.engine.queues.victims.trial import Trial


def classical_victims(trial: Trial) -> list[Victim]:
    want = trial.want
    sources = classical_sources(want)
    if not sources:
        return []
    for borrowing in attempts(want, sources):
        asked = [source for source in sources if not (borrowing and source.in_quota_only)]
        if could_suffice(want, asked, borrowing=borrowing):
            found = _attempt(trial, in_order(asked, want), borrowing=borrowing)
            if found:
                return found
    return []


def _attempt(trial: Trial, candidates: Iterable[Asked], *, borrowing: bool) -> list[Victim]:
    needs = trial.want.needs
    for held, source in candidates:
        is_asked = source.group == OWN or is_above_nominal(held.queue, source.common, needs)
        if is_asked and trial.may_take(held):
            trial.take(held, source.reason)
            if trial.fits(borrowing=borrowing):
                return trial.spare(borrowing=borrowing)
    trial.undo()
    return []
