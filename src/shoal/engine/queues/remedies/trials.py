"""Runs trials: a cycle for one workload with some change, without lasting effect.

A trial runs the discipline's own cycle, not a model of it, so a remedy takes into account all that a cycle does
(topology, preemption, reserved starts, places on nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from shoal.engine.queues.admission_cycle import AdmissionCycle
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.entry import CycleEntry, HeadOutcome
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.pending_workloads import LocalUse
from shoal.engine.queues.proof import Claim, Proven, Prover
from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts
from shoal.engine.queues.remedies.remedy import Effect
from shoal.engine.queues.state import Queues
from shoal.engine.queues.workloads import PendingWorkload, totals_of

MOST_TRIALS = 200

GoOn = Callable[[], bool]
FactsChange = Callable[[HypotheticalFacts], None]
"""Makes changes for one trial."""


class SpentError(Exception):
    """No trials are left, or the caller's time is up."""


@dataclass(slots=True)
class SearchLimit:
    """How long a search may go on, and whether that was long enough."""

    left: int = MOST_TRIALS
    go_on: GoOn = field(default=lambda: True)
    spent: int = 0
    is_short: bool = False
    """The search was cut: there may be more to find."""

    def spend(self) -> None:
        if self.left <= 0 or not self.go_on():
            self.is_short = True
            raise SpentError
        self.left -= 1
        self.spent += 1


@dataclass(frozen=True, slots=True)
class _Asking:
    """A prover that takes no places: it only says whether there would be any."""

    prover: Prover
    ended: tuple[str, ...]

    def admit(self, facts: WorkloadFacts, admission: QuotaAssignment, claims: Sequence[Claim] = ()) -> Proven:
        fits = self.prover.would_fit(facts, admission, self.ended, claims)
        return Proven.PLACED if fits else Proven.NO_CAPACITY

    def would_fit(
        self, facts: WorkloadFacts, admission: QuotaAssignment, ended: Iterable[str], claims: Sequence[Claim] = ()
    ) -> bool:
        return self.prover.would_fit(facts, admission, dict.fromkeys((*self.ended, *ended)), claims)


@dataclass(slots=True)
class Trials:
    """All trials for one workload that waits."""

    kueue: Kueue
    waiting: PendingWorkload
    queue: ClusterQueue
    prover: Prover | None
    now_s: float
    budget: SearchLimit
    _facts_of: dict[str, WorkloadFacts] = field(init=False)
    _local_use: LocalUse | None = field(init=False)

    def __post_init__(self) -> None:
        self._facts_of = {key: held.facts for key, held in self.queues.held.items()}
        self._local_use = self._use_as_now()

    @property
    def queues(self) -> Queues:
        return self.kueue.queues

    def blocker(self) -> str:
        """The workload of the same queue that has to be admitted first; empty where none has to."""
        pending = self.kueue.pending_of(self.queue.name)
        return "" if pending is None else pending.blocker_of(self.waiting.key, self._local_use)

    def effect(self, apply: FactsChange | None = None) -> Effect | None:
        """The effect of a change on the workload; None if it would still be refused."""
        return self.look(apply)[0]

    def look(self, apply: FactsChange | None = None) -> tuple[Effect | None, CycleEntry]:
        """The same, with the message of the refusal."""
        self.budget.spend()
        scene = HypotheticalFacts(self.queues, self.waiting.facts, self.queue.root)
        try:
            if apply is not None:
                apply(scene)
            entry = self._alone(scene)
        finally:
            scene.undo()
        if entry.outcome is HeadOutcome.PREEMPTING:
            return Effect.PREEMPTS, entry
        if entry.outcome is not HeadOutcome.ADMITTED:
            return None, entry
        is_untried = self.prover is not None and not scene.is_placed
        return (Effect.ADMITTED_BY_QUOTA if is_untried else Effect.ADMITTED), entry

    def _alone(self, scene: HypotheticalFacts) -> CycleEntry:
        """One cycle; what it did to others is taken back."""
        facts = scene.facts
        entry = CycleEntry(PendingWorkload(facts, totals_of(facts), self.waiting.stamp_s), self.queue)
        prover = _Asking(self.prover, tuple(scene.ended)) if self.prover is not None and scene.is_placed else None
        cycle = AdmissionCycle(
            self.queues,
            self.now_s,
            local_use=self._local_use,
            prover=prover,
            reservations=self.kueue.reservations,
        )
        try:
            cycle.run([entry])
        finally:
            self.queues.release(facts.key)
            for preempted in cycle.decisions.preempted:
                held = self.queues.held[preempted.workload]
                held.evicted, held.facts = False, self._facts_of[preempted.workload]
        return entry

    def _use_as_now(self) -> LocalUse | None:
        """Of a copy: reading an account brings it up to date."""
        if not self.kueue.usage.is_on:
            return None
        usage = deepcopy(self.kueue.usage)
        return lambda queue: usage.of(queue, self.now_s)
