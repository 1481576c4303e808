"""Nominates each head by itself: flavors, topology, victims, or a smaller size.

Every head is nominated as if it were alone; the round then goes through them in order on the facts as they are by then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.entry import CycleEntry, HeadOutcome
from shoal.engine.queues.facts import Usage, WorkloadFacts
from shoal.engine.queues.flavors.assigner import assign
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.flavors.modes import Mode
from shoal.engine.queues.pending_workloads import LocalUse
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topologies import Topologies
from shoal.engine.queues.victims.preemption_cost import PreemptionCost
from shoal.engine.queues.victims.search import PreemptionOracle, Victim
from shoal.engine.queues.workload_slices import more_counts, other_flavors, predecessor
from shoal.engine.queues.workloads import PendingWorkload, totals_of

_STOPPING = "Waiting for the workload that it replaces to stop"
_REPLACED = "Another workload has taken its place"
_IsGood = Callable[[Assignment, list[Victim]], bool]


@dataclass(slots=True)
class Nominator:
    """Nominations on the facts of one moment."""

    queues: Queues
    topologies: Topologies
    local_use: LocalUse | None = None
    preemption_cost: PreemptionCost | None = None
    fresh: set[str] = field(default_factory=set)
    """Workloads that were admitted in this cycle."""

    def nominate(self, entry: CycleEntry) -> None:
        """Fill in the entry, or say why it cannot be admitted whatever happens."""
        if self._is_refused(entry):
            return
        entry.barred = entry.waiting.barred
        entry.assignment, entry.victims = self._best(entry.waiting, entry.queue, entry.barred)
        entry.waiting.tried = entry.assignment.tried
        entry.why, entry.message = entry.assignment.why, entry.assignment.message

    def without(self, entry: CycleEntry, barred: frozenset[str]) -> None:
        """Nominate again without some flavors."""
        entry.waiting.tried = None
        entry.assignment, entry.victims = self._best(entry.waiting, entry.queue, barred)

    def again(self, entry: CycleEntry, assignment: Assignment) -> Assignment:
        """Nominate again with the flavors and the size that it had."""
        queue, waiting = entry.queue, entry.waiting
        chosen = {choice.flavor for each in assignment.pod_sets for choice in each.flavors.values()}
        others = frozenset(flavor.name for group in queue.facts.groups for flavor in group.flavors) - chosen
        counts = tuple(each.total.count for each in assignment.pod_sets)
        progress, waiting.tried = waiting.tried, None
        entry.assignment, entry.victims = self._at_size(waiting, queue, others | entry.barred, counts)
        waiting.tried = progress
        entry.why, entry.message = entry.assignment.why, entry.assignment.message
        return entry.assignment

    def smaller(
        self, entry: CycleEntry, assignment: Assignment, has_places: Callable[[Assignment], bool]
    ) -> Assignment | None:
        """Nominate at the largest size below the one that it had for which there is quota and are places."""
        waiting, size = entry.waiting, _size(assignment)
        if "PartialAdmission" not in self.queues.settings.gates:
            return None
        before = predecessor(self.queues, waiting.facts, entry.queue)
        barred = waiting.barred if before is None else waiting.barred | other_flavors(before)
        progress, waiting.tried = waiting.tried, None

        def is_good(found: Assignment, _: list[Victim]) -> bool:
            return found.mode is Mode.FIT and _size(found) < size and has_places(found)

        found = self._smaller(waiting, entry.queue, barred, is_good)
        waiting.tried = progress
        if found is None:
            return None
        entry.assignment, entry.victims = found
        return entry.assignment

    def _is_refused(self, entry: CycleEntry) -> bool:
        facts = entry.waiting.facts
        if any(state in {"Retry", "Rejected"} for state in facts.checks.values()):
            entry.mark_inadmissible(
                Wait.INADMISSIBLE, "The workload has failed admission checks", HeadOutcome.INADMISSIBLE_ALONE
            )
        elif not entry.queue.facts.namespaces.matches(self.queues.namespaces.get(facts.namespace, {})):
            entry.mark_inadmissible(
                Wait.INADMISSIBLE, _wrong_namespace(entry.queue, facts), HeadOutcome.NAMESPACE_MISMATCH
            )
        elif facts.fault:
            entry.mark_inadmissible(Wait.MISCONFIGURED, facts.fault, HeadOutcome.INADMISSIBLE_ALONE)
        elif (before := predecessor(self.queues, facts, entry.queue)) is not None and before.evicted:
            entry.mark_inadmissible(Wait.VICTIMS, _STOPPING, HeadOutcome.INADMISSIBLE_ALONE)
        elif self.queues.replacements.is_replaced(facts):
            entry.mark_inadmissible(Wait.PENDING, _REPLACED, HeadOutcome.INADMISSIBLE_ALONE)
        else:
            return False
        return True

    def _best(
        self, waiting: PendingWorkload, queue: ClusterQueue, barred: frozenset[str]
    ) -> tuple[Assignment, list[Victim]]:
        before = predecessor(self.queues, waiting.facts, queue)
        more = None if before is None else more_counts(waiting.facts, before)
        barred = barred if before is None else barred | other_flavors(before)
        full, victims = self._at_size(waiting, queue, barred, more)
        if full.mode is Mode.FIT or victims or "PartialAdmission" not in self.queues.settings.gates:
            return full, victims
        smaller = self._smaller(waiting, queue, barred, lambda found, for_it: found.mode is Mode.FIT or bool(for_it))
        return smaller or (full, victims)

    def _smaller(
        self, waiting: PendingWorkload, queue: ClusterQueue, barred: frozenset[str], is_good: _IsGood
    ) -> tuple[Assignment, list[Victim]] | None:
        """The largest size that is good, by halving; None where none is."""
        before = predecessor(self.queues, waiting.facts, queue)
        sizes, least = _sizes(waiting, before)
        spare = sum(sizes) - sum(least)
        if spare <= 0:
            return None
        found: tuple[Assignment, list[Victim]] | None = None
        low, high = 0, spare + 1
        while low < high:
            middle = (low + high) // 2
            counts = tuple(size - (size - lowest) * middle // spare for size, lowest in zip(sizes, least, strict=True))
            assignment, victims = self._at_size(waiting, queue, barred, counts)
            if is_good(assignment, victims):
                found, high = (assignment, victims), middle
            else:
                low = middle + 1
        return found

    def _at_size(
        self, waiting: PendingWorkload, queue: ClusterQueue, barred: frozenset[str], counts: tuple[int, ...] | None
    ) -> tuple[Assignment, list[Victim]]:
        queues, facts = self.queues, waiting.facts
        totals = waiting.totals if counts is None else totals_of(facts, counts)
        oracle = self._oracle(waiting)
        assignment = assign(queues, queue, facts, totals, oracle.ask, waiting.tried, barred)
        self.topologies.complete(queue, facts, assignment)
        if assignment.mode is not Mode.PREEMPT:
            return assignment, []
        proof = self.topologies.proof(queue, facts, assignment)
        victims = oracle.victims(queue, facts, assignment.usage, assignment.to_preempt, proof)
        self.topologies.foresee(queue, facts, assignment, victims)
        return assignment, victims

    def victims(
        self,
        waiting: PendingWorkload,
        queue: ClusterQueue,
        assignment: Assignment,
        places: Callable[[], bool] | None = None,
    ) -> list[Victim]:
        """Who would have to go for an assignment that needs room: quota, or (`places`) nodes."""
        needs = assignment.to_preempt if places is None else frozenset(assignment.usage)
        proof = places or self.topologies.proof(queue, waiting.facts, assignment)
        return self._oracle(waiting).victims(queue, waiting.facts, assignment.usage, needs, proof)

    def _oracle(self, waiting: PendingWorkload) -> PreemptionOracle:
        # Nothing is preempted for its replacement.
        replaced = waiting.facts.replaces
        fresh = self.fresh | {replaced} if replaced else self.fresh
        return PreemptionOracle(
            self.queues, waiting.stamp_s, local_usage=self.local_use, preemption_cost=self.preemption_cost, fresh=fresh
        )


def _sizes(waiting: PendingWorkload, before: AdmittedWorkload | None) -> tuple[list[int], list[int]]:
    """By pod set, how many pods are asked for, and how few would do. `before`: the workload that it replaces."""
    wanted = [total.count for total in waiting.totals]
    sizes = wanted if before is None else list(more_counts(waiting.facts, before))
    least = [
        size if pod_set.min_count is None else max(0, min(count, pod_set.min_count) - (count - size))
        for size, count, pod_set in zip(sizes, wanted, waiting.facts.pod_sets, strict=True)
    ]
    if before is not None and not any(least):
        # A workload that does not grow replaces none.
        least = [min(size, 1) if index == _first(sizes) else 0 for index, size in enumerate(sizes)]
    return sizes, least


def _first(sizes: list[int]) -> int:
    return next((index for index, size in enumerate(sizes) if size), 0)


def _size(assignment: Assignment) -> int:
    """Pods in all."""
    return sum(each.total.count for each in assignment.pod_sets)


def fits_quota(queue: ClusterQueue, usage: Usage) -> bool:
    """Whether so much is available now; nothing is, even where more is used than there is."""
    return all(amount <= max(0, queue.available(fr)) for fr, amount in usage.items())


def _wrong_namespace(queue: ClusterQueue, facts: WorkloadFacts) -> str:
    if queue.facts.namespaces.requirements is None:
        return (
            f"ClusterQueue {queue.name} has no namespaceSelector, so no namespace may use it; "
            "an empty one ({}) allows all"
        )
    return f"Workload namespace {facts.namespace} doesn't match ClusterQueue selector"
