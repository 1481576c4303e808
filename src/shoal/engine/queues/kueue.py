"""Implements the discipline `kueue`: pending workloads, admission cycles, and the events that activate inadmissible
workloads.

Guarantees: a cycle looks at one head per cluster queue, and only where something may have changed since the head was
looked at last; with nothing new a cycle costs nothing, however many wait. Same facts in any order, same decisions.

The world tells what happens (`put_workload`, `drop_workload`, facts through `queues.put` followed by `refresh`), asks
for cycles and carries out what they decide. Admissions count from the moment they are decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from shoal.engine.queues.admission_cycle import AdmissionCycle
from shoal.engine.queues.backlog import Backlog
from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.decisions import Decisions, StillWaiting
from shoal.engine.queues.durations import Durations
from shoal.engine.queues.entry import CycleEntry, HeadOutcome
from shoal.engine.queues.equivalence_class import ReportedReason
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.pending_workloads import LocalUse, PendingWorkloads
from shoal.engine.queues.proof import Prover
from shoal.engine.queues.quiescence import ActiveTrees
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.readiness import stamp_of
from shoal.engine.queues.requeue_heads import Requeuing, head_positions
from shoal.engine.queues.reservations import Reservations
from shoal.engine.queues.second_pass import SecondPass, is_due
from shoal.engine.queues.state import Queues
from shoal.engine.queues.usage import LocalUsage
from shoal.engine.queues.victims.preemption_cost import least_run_times

MOST_CYCLES = 100_000


class Kueue:
    """The pending workloads of all queues, over the facts of the queues."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        self.usage = LocalUsage(queues.settings)
        self.durations = Durations()
        self.reservations = Reservations(queues, self.durations) if queues.settings.reservations else None
        self._active_trees = ActiveTrees()
        self._backlog = Backlog(queues, self._active_trees)
        self._aftermath = Requeuing(queues, self._backlog, self._active_trees, self.reservations)
        self._stirred: set[CohortNode] = set()
        """Roots of trees in which something was freed since the last cycle."""
        self._second: dict[str, None] = {}
        """Workloads that need a second pass."""
        self._stuck: dict[str, None] = {}
        """Workloads without capacity on nodes, until nodes change or are released."""
        self._spared: list[tuple[float, str]] = []
        """(time, workload): when a workload becomes preemptible."""
        self._generation = self._nodes_generation = self._use_generation = -1
        self._cycles = 0

    # What happens

    def put_workload(self, facts: WorkloadFacts, now_s: float) -> None:
        """A workload is new, or changed; what is known already is no news."""
        held = self.queues.held.get(facts.key)
        known = self._backlog.get(facts.key) if held is None else held.facts
        if known == facts:
            return
        self._release(facts.key, now_s)
        if facts.admission is None:
            self._backlog.put(facts, now_s)
            return
        self.queues.refresh()
        held = self.queues.hold(facts, stamp_of(self.queues.settings, facts))
        if held is not None:
            self._admitted(held, now_s, is_new=False)

    def drop_workload(self, key: str, now_s: float, *, finished: bool = False) -> None:
        """A workload has finished, or is gone."""
        held = self.queues.held.get(key)
        if finished and held is not None and held.facts.admitted:
            self.durations.learn(held.facts, now_s - held.facts.admitted_s)
        self._release(key, now_s, is_over=True)
        self._backlog.forget(key)

    def wake(self, root: CohortNode | None = None) -> None:
        """Inadmissible workloads may try again: all, or those of one tree."""
        leaves = self.queues.cluster_queues.values() if root is None else self.queues.leaves_of(root)
        for queue in leaves:
            self._backlog.queue_inadmissible(queue.name)
            self._active_trees.stir(queue.name)

    # Cycles

    def cycle(self, now_s: float, prover: Prover | None = None) -> Decisions:
        """Look at one head of each cluster queue that may have something to decide."""
        self._catch_up(now_s)
        self._cycles += 1
        local_use = self._local_use(now_s)
        if self.reservations is not None:
            self.reservations.prover = prover
        cycle = AdmissionCycle(self.queues, now_s, local_use=local_use, prover=prover, reservations=self.reservations)
        entries = self._heads(local_use)
        before = head_positions(entries)
        cycle.nominate(entries)
        second = SecondPass(self.queues, cycle.decisions, now_s)
        if self._second:
            # Nominated with the others, and before them in turn: what they hold is charged anyway.
            self._second = dict.fromkeys(second.run(self._second))
            self._stuck.update(dict.fromkeys(second.stuck))
            cycle.touched |= second.touched
        cycle.decide(entries)
        if second.release():
            self._stirred |= cycle.touched | self.queues.short_of_nodes
        for entry in entries:
            if entry.outcome is HeadOutcome.ADMITTED:
                self._admitted(self.queues.held[entry.waiting.key], now_s, is_new=True)
        for root in self._aftermath.end_cycle(entries, before, cycle, now_s):
            self.wake(root)
        return cycle.decisions

    def run(self, now_s: float, most: int = MOST_CYCLES, prover: Prover | None = None) -> list[Decisions]:
        """Run cycles until no workload is left to consider."""
        done = []
        for _ in range(most):
            done.append(self.cycle(now_s, prover))
            if not self._active_trees.is_any:
                break
        return done

    @property
    def is_idle(self) -> bool:
        """Whether the next cycle has no workload to consider before something changes."""
        news = self.queues.is_stale or self._nodes_generation != self.queues.nodes_generation
        return not (news or self._stirred or self._second or self._active_trees.is_any)

    def next_s(self) -> float | None:
        """When time alone may change something: a backoff or a minimum runtime ends."""
        moments = [self._backlog.next_s(), self._spared[0][0] if self._spared else None]
        return min((each for each in moments if each is not None), default=None)

    # Who waits

    def states(self) -> Iterator[StillWaiting]:
        """All pending workloads with their reasons; those not considered yet are active."""
        return self._backlog.states()

    def pending_of(self, cluster_queue: str) -> PendingWorkloads | None:
        return self._backlog.pending_of(cluster_queue)

    def over_budget(self, workload: str) -> str:
        """The message of a workload that waits for its budget; empty for any other."""
        return self._backlog.over_budget(workload)

    def reported_of(self, workload: str) -> ReportedReason | None:
        """Why the workload was refused last, while it is pending."""
        return self._backlog.reported_of(workload)

    # Inside, the heads of a cycle

    def _heads(self, local_use: LocalUse | None) -> list[CycleEntry]:
        entries = []
        for name in self._active_trees.active_queues():
            head = self._backlog.head(name, local_use)
            if head is None:
                self._active_trees.remove(name)
                continue
            queue = self.queues.cluster_queues[name]
            if head.tried is not None and head.tried_at == self._cycles - 1:
                # Freed quota makes a search start anew, but not one that is under way: it might never get to its end.
                head.tried.generation = queue.generation
            if head.tried_at != self._cycles - 1:
                # There was time for nodes to change.
                head.barred = frozenset()
            head.tried_at = self._cycles
            tried = head.tried
            is_resumed = tried is not None and tried.is_open and tried.generation == queue.generation
            entries.append(CycleEntry(head, queue, is_resumed=is_resumed))
        return entries

    # Inside, who comes and goes

    def _release(self, key: str, now_s: float, *, is_over: bool = False) -> None:
        """It holds nothing and waits nowhere, until its object changes."""
        self._backlog.remove(key)
        self._second.pop(key, None)
        self._stuck.pop(key, None)
        if self.reservations is not None and (root := self.reservations.forget(key)) is not None:
            self._stirred.add(root)
        held = self.queues.release(key, is_over=is_over)
        if held is not None:
            self.usage.released(held.facts.queue, held.admission, now_s)
            held.queue.generation += 1
            self._stirred.add(held.queue.root)
            if held.topology_flavors:
                self._stirred |= self.queues.short_of_nodes
                self.queues.short_of_nodes.clear()
                self._look_again()
        if self.queues.settings.block_admission:
            # A workload that is not ready blocks all others, in every tree.
            self._stirred.update(queue.root for queue in self.queues.cluster_queues.values())

    def _admitted(self, held: AdmittedWorkload, now_s: float, *, is_new: bool) -> None:
        if self.usage.is_on:
            self.usage.admitted(held.facts.queue, held.admission, now_s, is_new=is_new)
        self._note(held)

    def _note(self, held: AdmittedWorkload) -> None:
        """What of a holder matters later."""
        if held.facts.admitted:
            for least_s in {self.queues.settings.min_runtime_s, *least_run_times(held.queue)}:
                if least_s > 0:
                    heappush(self._spared, (held.facts.admitted_s + least_s, held.key))
        if is_due(held):
            self._second[held.key] = None

    def _look_again(self) -> None:
        """Workloads that need a second pass may fit now."""
        self._second |= self._stuck
        self._stuck.clear()

    def _catch_up(self, now_s: float) -> None:
        """Facts that changed, and backoffs that ended."""
        self.queues.refresh()
        if self._generation != self.queues.generation:
            self._generation = self.queues.generation
            self._queues_changed(now_s)
        if self._nodes_generation != self.queues.nodes_generation:
            self._nodes_generation = self.queues.nodes_generation
            self._look_again()
            self.wake()
        if self._use_generation != self.queues.use_generation:
            self._use_generation = self.queues.use_generation
            for local in self.queues.local_queues.values():
                self.usage.weigh(local, now_s)
        while self._spared and self._spared[0][0] <= now_s:
            held = self.queues.held.get(heappop(self._spared)[1])
            if held is not None:
                self._stirred.add(held.queue.root)
        for root in self._stirred:
            self.wake(root)
        self._stirred.clear()
        self._backlog.end_backoffs(now_s)

    def _queues_changed(self, now_s: float) -> None:
        self._backlog.requeue_all(now_s)
        # All workloads are active again, and the former trees do not exist any more.
        self._stirred.clear()
        if self.reservations is not None:
            self.reservations.renew((), now_s, self._backlog.queue_of)
        self._spared.clear()
        for held in self.queues.held.values():
            self._note(held)

    def _local_use(self, now_s: float) -> LocalUse | None:
        return (lambda queue: self.usage.of(queue, now_s)) if self.usage.is_on else None
