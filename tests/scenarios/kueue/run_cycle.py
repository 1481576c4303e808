"""A case decided by whole scheduling cycles: all facts in, as many cycles as it says, and who stands where then."""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.engine.queues.decisions import Admitted, Decisions
from shoal.engine.queues.kueue import Kueue

from .answers import Answer, admission_answer
from .case import Case
from .facts import queues_of
from .workloads import NOW_S, holding_of, waiting_of


@dataclass
class _Told:
    """What all cycles together decided."""

    admitted: dict[str, Admitted] = field(default_factory=dict)
    preempted: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    skips: dict[str, int] = field(default_factory=dict)

    def add(self, done: Decisions) -> None:
        self.admitted.update((each.workload, each) for each in done.admitted)
        self.preempted.update((each.workload, each.reason.value) for each in done.preempted)
        self.stopped.update((each.workload, each.reason) for each in done.stopped)
        self.why.update((each.workload, each.why.value) for each in done.waiting)
        for queue, count in done.skips.items():
            self.skips[queue] = self.skips.get(queue, 0) + count


def decide(case: Case) -> Answer:
    """Run the case to its end. Nothing here knows what is expected."""
    kueue = Kueue(queues_of(case))
    for facts in (*holding_of(case), *waiting_of(case)):
        kueue.put_workload(facts, NOW_S)
    told = _Told()
    for number in range(max(case.cycles, 1)):
        if number:
            for key in case.between_cycles.deleted:
                kueue.drop_workload(key, NOW_S)
        told.add(kueue.cycle(NOW_S))
    return _answer(case, kueue, told)


def _answer(case: Case, kueue: Kueue, told: _Told) -> Answer:
    gone = set(case.between_cycles.deleted) if case.cycles > 1 else set()
    left = [each.key for each in case.pending if each.key not in told.admitted and each.key not in gone]
    states = {state.workload: state for state in kueue.states()}
    standing = {key: states[key].state if key in states else "none" for key in left}
    why = {key: states[key].why.value for key in left if key in states} | {
        k: w for k, w in told.why.items() if k in left
    }
    return {
        "admitted": {key: admission_answer(each.admission) for key, each in told.admitted.items()},
        "quotaReservedOnly": [key for key, each in told.admitted.items() if each.checks_pending],
        "reassigned": [key for key, each in told.admitted.items() if each.again],
        "preempted": list(told.preempted),
        "preemptionReasons": told.preempted,
        "evicted": told.stopped,
        "inadmissible_or_pending": left,
        "standing": standing,
        "quotaReservedFalseReason": why,
        "admissionCyclePreemptionSkips": told.skips,
    }
