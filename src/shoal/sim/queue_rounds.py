"""Rounds of queue admission and placement: admissions, their pods, preemptions, then the places of all pods.

Each round keeps the queues in order (`upkeep`), runs one cycle of the discipline and one round of placement. Pods of a
workload come when it is admitted. A preempted or stopped workload ends like an evicted pod: its pods and its quota are
free before the next round, or stay as they are with `keep_terminating`; then it waits again, as old as it was.

Rejected: cycles until the queues are quiet before anything is placed. A workload would be admitted on the quota of a
victim whose pods still run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import structs

from shoal.engine.cycle_state import Step
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.decisions import Admitted, Preempted, StillWaiting, Stopped
from shoal.engine.queues.eviction_rules import to_stop
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.proof import Proof, Proven
from shoal.sim.queue_returns import BudgetsLeft, as_waiting
from shoal.sim.queued_world import Queued
from shoal.sim.rounds import MOST_ROUNDS, Record, Rounds

_DELETED = "Deleted"
MOST_TOLD = 1000
"""Of more who wait, a round tells only of those that it looked at, unless all are asked for."""


@dataclass(slots=True)
class QueueRecord(Record):
    """What one round decided, queues included."""

    admitted: list[Admitted] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    stopped: list[Stopped] = field(default_factory=list)
    waiting: list[StillWaiting] = field(default_factory=list)
    """All workloads pending or inadmissible after the cycle of the queues; of very many, those that were considered."""
    unproven: str = ""
    """Why it was not checked that admitted workloads find places; empty where it was checked."""


class QueueRounds(Rounds):
    """One cluster's life behind its queues."""

    def __init__(
        self,
        queued: Queued,
        intake: Intake,
        placement: Placement,
        *,
        seed: int = 0,
        now_s: float = 0.0,
        steps: Sequence[Step] | None = None,
        keep_terminating: bool = False,
        recreate: bool = False,
        prover: Proof | None = None,
    ) -> None:
        super().__init__(
            intake,
            placement,
            seed=seed,
            now_s=now_s,
            steps=steps,
            keep_terminating=keep_terminating,
            recreate=recreate,
        )
        self.kueue = queued.kueue
        self.workloads = {facts.key: facts for facts in queued.workloads}
        """All of them, as they were found."""
        self._budgets = BudgetsLeft(self.kueue.queues, self.workloads)
        self.pods = queued.pods
        self.prover = prover
        self._keeps = keep_terminating
        self._stopped: dict[str, Stopped] = {}
        """Ending workloads that were stopped, not preempted."""
        self._elsewhere: list[str] = []
        """Workloads some of whose pods come back in other domains."""
        self.tells_all = False
        """Whether a round reports all waiting workloads, however many they are."""
        self._has_begun = False

    def round(self) -> QueueRecord:
        """One decision of the queues, one of placement, both obeyed."""
        if self.prover is not None:
            self.placement.renew()
        if not self._has_begun:
            self._begin()
        stopped = self._upkeep()
        decisions = self.kueue.cycle(self.now_s, self.prover)
        ended = self._end([*stopped, *decisions.stopped], decisions.preempted)
        ended += self._let_in(decisions.admitted)
        proven = self._take_proven()
        is_reported = self.tells_all or len(self.workloads) <= MOST_TOLD
        waiting = list(self.kueue.states()) if is_reported else decisions.waiting
        done = super().round()
        freed = self._free()
        if done.ended:
            # Room on nodes is news for those who had the quota and no place.
            self.kueue.wake()
        told = self._tell_ready()
        is_quiet = done.is_quiet and decisions.is_quiet and self.kueue.is_idle and not (stopped or freed or told)
        if is_quiet and not is_reported:
            waiting = list(self.kueue.states())
        return QueueRecord(
            [*proven, *done.placed],
            done.nominated,
            [*ended, *done.evicted],
            done.moved,
            done.ended,
            is_quiet,
            decisions.admitted,
            decisions.preempted,
            [*stopped, *decisions.stopped],
            waiting,
            self.unproven(),
        )

    @property
    def enough(self) -> int:
        """More rounds than it takes until they are quiet: a round looks at one head of each queue."""
        return max(MOST_ROUNDS, 4 * len(self.workloads))

    def unproven(self) -> str:
        """Why quota alone decides, where it does."""
        if not self.cluster.row_of:
            return "no nodes are known"
        if self.kueue.queues.settings.placement == "quotaOnly":
            return "placement is quotaOnly"
        return "" if self.prover is not None else "places are looked for after admission"

    def finish(self, workload: str) -> None:
        """It ran to its end: nothing of it is left."""
        self.pods.forget(workload)
        self.kueue.drop_workload(workload, self.now_s, finished=True)

    # internals

    def _begin(self) -> None:
        """Pods of those who were admitted before are there, or come before all others."""
        self._has_begun = True
        for held in self.kueue.queues.held.values():
            if held.evicted:
                self.pods.leave(held.key)
            elif held.facts.admitted and not self._is_placed(held.facts, held.admission):
                self.pods.arrive(held.facts, held.admission)

    def _is_placed(self, facts: WorkloadFacts, admission: QuotaAssignment) -> bool:
        return self.prover is not None and self.prover.admit(facts, admission) is Proven.PLACED

    def _take_proven(self) -> list[Place]:
        """Where the proofs of this round put pods: they run there now."""
        if self.prover is None:
            return []
        placed, self.prover.placed = self.prover.placed, []
        there = [place for place in placed if place.pod in self.cluster.pods]
        for place in there:
            self._bind(place)
        return there

    def _upkeep(self) -> list[Stopped]:
        queues = self.kueue.queues
        queues.refresh()
        found = list(to_stop(queues, self.now_s))
        for each in found:
            held = queues.held[each.workload]
            held.stop(self.now_s, each.reason)
        return found

    def _end(self, stopped: Sequence[Stopped], preempted: Sequence[Preempted]) -> list[Evict]:
        """Starts to end the given workloads; returns their pods."""
        self._stopped.update((each.workload, each) for each in stopped)
        ended = [Evict(pod, each.beneficiary) for each in preempted for pod in self.pods.leave(each.workload)]
        return ended + [Evict(pod, "") for each in stopped for pod in self.pods.leave(each.workload)]

    def _let_in(self, admitted: Sequence[Admitted]) -> list[Evict]:
        """Their pods come; those of them that end because their place is another by now."""
        ended = []
        for each in admitted:
            held = self.kueue.queues.held.get(each.workload)
            if held is None or held.evicted:
                continue
            if each.checks_pending:
                # Room for its pods was found, and they may not have it yet.
                self.pods.leave(each.workload)
                continue
            self._budgets.is_back(each.workload)
            elsewhere = self.pods.leave_elsewhere(held.facts, each.admission) if each.again else []
            if elsewhere:
                self._elsewhere.append(each.workload)
                ended += [Evict(pod, each.workload) for pod in elsewhere]
            if self.kueue.queues.settings.wait_for_pods_ready and not each.again:
                held.facts = structs.replace(held.facts, pods_ready=False)
            self.pods.arrive(held.facts, each.admission)
        return ended

    def _free(self) -> bool:
        """Removes the stopped workloads, which wait again; returns whether there were any."""
        if self._keeps:
            return False
        queues = self.kueue.queues
        for workload in self._elsewhere:
            held = queues.held.get(workload)
            if held is not None and not held.evicted:
                self.pods.arrive(held.facts, held.admission)
        self._elsewhere.clear()
        gone = [held.facts for held in queues.held.values() if held.evicted]
        for facts in gone:
            if facts.evicted_why == _DELETED:
                self.kueue.drop_workload(facts.key, self.now_s)
            else:
                self.kueue.put_workload(as_waiting(facts, self._stopped.pop(facts.key, None)), self.now_s)
            self._budgets.ended(facts.key)
        if gone and queues.settings.block_admission:
            # Workloads that were not ready blocked all others, in every tree.
            self.kueue.wake()
        return bool(gone)

    def _tell_ready(self) -> bool:
        """Pods that are on nodes are ready; whether that is news. Where no node is known, all are taken to run."""
        queues = self.kueue.queues
        if not queues.settings.wait_for_pods_ready:
            return False
        is_news = False
        for held in queues.held.values():
            if held.facts.pods_ready or not held.facts.admitted or held.evicted:
                continue
            if not self.cluster.row_of or self.pods.are_running(held.key):
                held.facts = structs.replace(held.facts, pods_ready=True, ready_lost_s=None)
                is_news = True
        if is_news:
            self.kueue.wake()
        return is_news
