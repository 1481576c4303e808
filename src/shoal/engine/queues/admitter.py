"""Admits one head: proves its placement where nodes are known, then charges its quota."""

from __future__ import annotations

from msgspec import structs

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.decisions import Admitted
from shoal.engine.queues.entry import CycleEntry
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.proof import Claim, Proven, Prover
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topologies import Topologies
from shoal.engine.queues.workload_slices import predecessor, together


class Admitter:
    """Admissions at one moment."""

    def __init__(self, queues: Queues, topologies: Topologies, prover: Prover | None, now_s: float) -> None:
        self._queues = queues
        self._topologies = topologies
        self._prover = None if queues.settings.placement == "quotaOnly" else prover
        self._now_s = now_s
        self._claims: list[Claim] = []
        """Heads with victims in this cycle: no other head takes the nodes that they will get."""

    def admission(self, entry: CycleEntry, assignment: Assignment) -> QuotaAssignment:
        """What would be written down; domains on nodes that are still to be made come later."""
        admission = assignment.admission(entry.queue.name)
        delayed = self._topologies.delayed_sets(entry.queue, entry.waiting.facts, assignment)
        if not delayed:
            return admission
        pod_sets = tuple(
            structs.replace(each, delayed="Pending") if each.name in delayed else each for each in admission.pod_sets
        )
        return structs.replace(admission, pod_sets=pod_sets)

    def prove(self, entry: CycleEntry, admission: QuotaAssignment) -> Proven:
        """Whether its pods have places, which are taken then; not yet while checks keep them from starting."""
        is_delayed = any(each.delayed == "Pending" for each in admission.pod_sets)
        if self._prover is None or is_delayed:
            return Proven.UNKNOWN
        facts = entry.waiting.facts
        if not _has_pending_checks(entry.queue, facts, admission):
            return self._prover.admit(facts, admission, self._claims)
        fits = self._prover.would_fit(facts, admission, (), self._claims)
        return Proven.UNKNOWN if fits else Proven.NO_CAPACITY

    def claim(self, entry: CycleEntry, admission: QuotaAssignment) -> None:
        """Places are kept for it until the cycle ends."""
        self._claims.append((entry.waiting.facts, admission))

    def would_fit_without_victims(self, facts: WorkloadFacts, admission: QuotaAssignment) -> bool:
        """Whether its pods would have places without those that a search for victims has unseated."""
        if self._prover is None:
            return False
        ended = [key for key, each in self._queues.held.items() if each.evicted or key not in each.queue.held]
        return bool(ended) and self._prover.would_fit(facts, admission, ended, self._claims)

    def has_places(self, entry: CycleEntry, admission: QuotaAssignment) -> bool:
        """Whether its pods have places, without taking them."""
        return self._prover is None or self._prover.would_fit(entry.waiting.facts, admission, (), self._claims)

    def would_fit(self, entry: CycleEntry, admission: QuotaAssignment) -> bool:
        """Whether its pods would have places once its victims, and all that are on their way out, are gone."""
        if self._prover is None or any(each.delayed == "Pending" for each in admission.pod_sets):
            return True
        ended = {key for key, each in self._queues.held.items() if each.evicted}
        ended.update(victim.held.key for victim in entry.victims)
        return self._prover.would_fit(entry.waiting.facts, admission, ended, self._claims)

    def grant(self, entry: CycleEntry, admission: QuotaAssignment, proven: Proven) -> Admitted:
        """It holds its quota from now on."""
        queue, facts = entry.queue, entry.waiting.facts
        before = predecessor(self._queues, facts, queue)
        if before is not None:
            admission = together(facts, before, admission)
        pending = _has_pending_checks(queue, facts, admission)
        admitted = structs.replace(
            facts,
            admission=admission,
            reserved_s=self._now_s,
            admitted=not pending,
            admitted_s=facts.admitted_s if pending else self._now_s,
            evicted_s=None,
            evicted_why="",
            pods_ready=not self._queues.settings.wait_for_pods_ready,
        )
        self._queues.hold(admitted, entry.waiting.stamp_s)
        return Admitted(facts.key, facts.queue, admission, pending, proven=proven is Proven.PLACED)


def _has_pending_checks(queue: ClusterQueue, facts: WorkloadFacts, admission: QuotaAssignment) -> bool:
    """Whether a check that the queue demands is open, or any check in its status."""
    flavors = {flavor for pod_set in admission.pod_sets for flavor in pod_set.flavors.values()}
    return any(state != "Ready" for state in facts.checks.values()) or any(
        facts.checks.get(use.name) != "Ready" for use in queue.facts.checks if use.concerns(flavors)
    )
