"""Runs one admission cycle over the heads of the queues: nominates all, then decides one by one.

The cycle works on the facts themselves. Capacity that is only reserved for the cycle (for a head whose victims still
run) is charged when it is decided and released at the end; the charge of an admitted workload stays.

Overlapping victims: the later head is tried as if the earlier head's victims had ended. If that is enough, it waits for
them as well; otherwise it needs other victims.

A head that has quota but no capacity on nodes is nominated again with other flavors, other victims or fewer pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.queues.admitter import Admitter
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.cycle_capacity import CycleCapacity, Shortfall, own_part
from shoal.engine.queues.decisions import Decisions, Preempted
from shoal.engine.queues.entry import CycleEntry, HeadOutcome
from shoal.engine.queues.facts import QuotaAssignment
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.flavors.modes import Mode
from shoal.engine.queues.nomination import Nominator, fits_quota
from shoal.engine.queues.order import Classical, Tournament
from shoal.engine.queues.pending_workloads import LocalUse
from shoal.engine.queues.proof import Proven, Prover
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.reservations import Reservations
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topologies import Topologies
from shoal.engine.queues.victims.budgets import are_within
from shoal.engine.queues.victims.preemption_cost import PreemptionCost
from shoal.engine.queues.victims.search import Victim

_NEW_VICTIMS = {"RecomputePreemptionTargetsUponOverlap", "RecomputeAssignmentUponPreemptionTargetsOverlap"}
"""Kueue's gate, by the name it had before and the one it has now."""
_OTHER_DOMAINS = "TASRecomputeAssignmentWithinSchedulingCycle"
_OVERLAP = "Workload has overlapping preemption targets with another workload"
_OTHERS_VICTIMS = "Waiting for workloads that others preempt"
_THEIR_PODS = "Waiting for pods of preempted workloads to end"
_NO_PLACES = "Quota is available, but the pods do not fit on the nodes"
_NO_LONGER_FITS = "Workload no longer fits after processing another workload"
_BUDGETS = "Disruption budgets of workloads that would have to be preempted are used up by others of this cycle"
_NO_CANDIDATES = "Workload requires preemption, but there are no candidate workloads allowed for preemption"
_NOT_READY = "waiting for all admitted workloads to be in PodsReady condition"


class AdmissionCycle:
    """One pass over some heads."""

    def __init__(
        self,
        queues: Queues,
        now_s: float,
        *,
        local_use: LocalUse | None = None,
        prover: Prover | None = None,
        reservations: Reservations | None = None,
    ) -> None:
        self.decisions = Decisions()
        self.touched: set[CohortNode] = set()
        """Roots of trees in which a workload was admitted or preempted."""
        self._queues = queues
        self._now_s = now_s
        self._reservations = reservations
        self._topologies = Topologies(queues)
        self._nominator = Nominator(queues, self._topologies, local_use, PreemptionCost.of(queues.settings, now_s))
        self._capacity = CycleCapacity(queues, self._topologies)
        self._granting = Admitter(queues, self._topologies, prover, now_s)
        self._fallbacks = Fallbacks(self._nominator, self._granting)
        self._is_blocked = queues.settings.block_admission and any(
            not held.facts.pods_ready for held in queues.held.values()
        )

    def run(self, entries: Sequence[CycleEntry]) -> None:
        """The whole of it."""
        self.nominate(entries)
        self.decide(entries)

    def nominate(self, entries: Sequence[CycleEntry]) -> None:
        """Look at each as if it were alone."""
        for entry in entries:
            self._nominator.nominate(entry)

    def decide(self, entries: Sequence[CycleEntry]) -> None:
        """Decide on all nominated heads, and set the `outcome` of each."""
        hopeful = [entry for entry in entries if entry.assignment is not None and entry.assignment.mode]
        fair = self._queues.settings.fair_sharing
        order = Tournament(self._queues, hopeful) if fair else Classical(self._queues, hopeful)
        for entry in order:
            if entry.assignment is not None and self._decide(entry, entry.assignment):
                order.changed()
        self._capacity.release()

    def _decide(self, entry: CycleEntry, assignment: Assignment) -> bool:
        """Decide on one head; whether that changed what others may use."""
        if assignment.mode is Mode.NO_FIT:
            # Nominated anew, after others of the cycle took what it would have had.
            entry.mark_inadmissible(entry.why, entry.message)
            return False
        if assignment.mode is Mode.PREEMPT and not entry.victims:
            return self._reserve_own_quota(entry, assignment)
        if self._capacity.shares_victims(entry) and not self._finds_other_victims(entry, assignment):
            return entry.outcome is not HeadOutcome.RETRY
        shortfall = self._capacity.shortfall(entry, assignment)
        if shortfall is Shortfall.DOMAINS and not entry.is_renewed and _OTHER_DOMAINS in self._queues.settings.gates:
            # Its domains are taken: other domains or other victims may do, with the same flavors.
            entry.is_renewed = True
            assignment = self._nominator.again(entry, assignment)
            return self._decide(entry, assignment)
        if shortfall is not Shortfall.NOTHING:
            if assignment.mode is Mode.PREEMPT:
                self._skip(entry.queue)
            entry.mark_inadmissible(Wait.QUOTA, _NO_LONGER_FITS, HeadOutcome.RETRY)
            return False
        if self._delays_reservation(entry, assignment):
            return False
        if assignment.mode is Mode.PREEMPT:
            return self._free_capacity(entry, assignment)
        if self._is_blocked:
            # No flavor was too small for it.
            entry.waiting.tried = None
            entry.mark_inadmissible(Wait.PODS_READY, _NOT_READY, HeadOutcome.RETRY)
            return False
        return self._admit(entry, assignment)

    def _reserve_own_quota(self, entry: CycleEntry, assignment: Assignment) -> bool:
        """No victim can be evicted for it yet; borrowers must not use its own quota meanwhile."""
        entry.mark_inadmissible(entry.why, _joined(entry.message, _NO_CANDIDATES))
        if entry.queue.facts.preemption.reclaim == "Any":
            return False
        self._capacity.reserve(entry, assignment, own_part(entry.queue, assignment))
        return True

    def _finds_other_victims(self, entry: CycleEntry, assignment: Assignment) -> bool:
        """A victim frees capacity for one head only; returns whether the head continues, with victims of its own."""
        if self._queues.settings.gates >= _NEW_VICTIMS:
            with self._capacity.without_victims(entry.queue.root):
                proof = self._topologies.proof(entry.queue, entry.waiting.facts, assignment)
                waits = fits_quota(entry.queue, assignment.usage) and (proof is None or proof())
                entry.victims = [] if waits else self._nominator.victims(entry.waiting, entry.queue, assignment)
            if waits:
                entry.mark_inadmissible(Wait.VICTIMS, _OTHERS_VICTIMS, HeadOutcome.PREEMPTING)
                self._capacity.reserve(entry, assignment, assignment.usage)
                return False
            if not entry.victims:
                self._reserve_own_quota(entry, assignment)
            return bool(entry.victims)
        return self._retry(entry, Wait.QUOTA, _OVERLAP)

    def _delays_reservation(self, entry: CycleEntry, assignment: Assignment) -> bool:
        """Whether its admission would delay a reserved start."""
        if self._reservations is None:
            return False
        admission = assignment.admission(entry.queue.name)
        first = self._reservations.delayed_by(entry, admission, self._now_s)
        if first is None:
            return False
        seconds = max(0.0, first.start_s - self._now_s)
        message = f"It would delay {first.workload}, which is to start in {seconds:.0f} s"
        entry.mark_inadmissible(Wait.RESERVED, message, HeadOutcome.INADMISSIBLE_ALONE)
        return True

    def _preempt(self, entry: CycleEntry, assignment: Assignment) -> bool:
        """Preempt its victims, unless other heads of the cycle have used up what disruption budgets allow."""
        if not are_within(self._queues, (victim.held for victim in entry.victims)):
            return self._retry(entry, Wait.QUOTA, _BUDGETS)
        for victim in entry.victims:
            held = victim.held
            self._capacity.add_victim(held)
            if held.evicted:
                continue
            self.touched.add(entry.queue.root)
            held.stop(self._now_s, "Preempted")
            self.decisions.preempted.append(Preempted(held.key, entry.waiting.key, victim.reason))
        message = f"Pending the preemption of {len(entry.victims)} workload(s)"
        entry.mark_inadmissible(Wait.VICTIMS, _joined(entry.message, message), HeadOutcome.PREEMPTING)
        self._reserve_for(entry, assignment)
        return True

    def _reserve_for(self, entry: CycleEntry, assignment: Assignment) -> None:
        """Reserve quota and places until the cycle ends."""
        self._capacity.reserve(entry, assignment, assignment.usage)
        self._granting.claim(entry, self._granting.admission(entry, assignment))

    def _admit(self, entry: CycleEntry, assignment: Assignment) -> bool:
        admission = self._granting.admission(entry, assignment)
        proven = self._granting.prove(entry, admission)
        if proven is Proven.LATER:
            # Its victims have released their quota before their nodes: no other head takes either.
            entry.mark_inadmissible(Wait.VICTIMS, _THEIR_PODS, HeadOutcome.PREEMPTING)
            self._reserve_for(entry, assignment)
            return True
        if proven is Proven.NO_CAPACITY:
            return self._elsewhere(entry, assignment, admission)
        self.decisions.admitted.append(self._granting.grant(entry, admission, proven))
        self.touched.add(entry.queue.root)
        self._nominator.fresh.add(entry.waiting.key)
        entry.outcome = HeadOutcome.ADMITTED
        # Its pods are not ready yet either.
        self._is_blocked = self._queues.settings.block_admission
        return True

    def _free_capacity(self, entry: CycleEntry, assignment: Assignment) -> bool:
        """Preempt victims, if that frees places for its pods as well as quota."""
        admission = self._granting.admission(entry, assignment)
        if not self._granting.would_fit(entry, admission):
            entry.victims = self._fallbacks.capacity_victims(entry, assignment, admission)
            if not entry.victims:
                return self._elsewhere(entry, assignment, admission)
            if self._capacity.shares_victims(entry):
                return self._retry(entry, Wait.TOPOLOGY, _OVERLAP)
        return self._preempt(entry, assignment)

    def _elsewhere(self, entry: CycleEntry, assignment: Assignment, admission: QuotaAssignment) -> bool:
        """Quota suffices and the nodes do not: try the remaining flavors, then other victims."""
        level = entry.borrow
        found = self._fallbacks.other_flavors(entry, admission)
        if found is not None:
            if found.borrow > level:
                # Those that borrow less come before it: in the next cycle it takes its turn with these flavors.
                entry.waiting.barred = entry.barred
                entry.mark_inadmissible(Wait.TOPOLOGY, _NO_PLACES, HeadOutcome.RETRY)
                return False
            return self._decide(entry, found)
        if assignment.mode is Mode.FIT:
            entry.assignment, entry.victims = assignment, self._fallbacks.capacity_victims(entry, assignment, admission)
            if self._capacity.shares_victims(entry):
                return self._retry(entry, Wait.TOPOLOGY, _OVERLAP)
            if entry.victims:
                return self._preempt(entry, assignment)
        smaller = self._fallbacks.smaller(entry, assignment)
        if smaller is not None:
            return self._decide(entry, smaller)
        has_likes = all(each.template for each in entry.waiting.facts.pod_sets)
        entry.mark_inadmissible(
            Wait.TOPOLOGY, _NO_PLACES, HeadOutcome.INADMISSIBLE if has_likes else HeadOutcome.INADMISSIBLE_ALONE
        )
        return False

    def _retry(self, entry: CycleEntry, why: Wait, message: str) -> bool:
        """Other heads of the cycle took what it needs, although it had victims: it is tried again."""
        self._skip(entry.queue)
        entry.mark_inadmissible(why, message, HeadOutcome.RETRY)
        return False

    def _skip(self, queue: ClusterQueue) -> None:
        self.decisions.skips[queue.name] = self.decisions.skips.get(queue.name, 0) + 1


def _joined(message: str, more: str) -> str:
    return f"{message}. {more}" if message else more


class Fallbacks:
    def __init__(self, nominator: Nominator, granting: Admitter) -> None:
        self._nominator = nominator
        self._granting = granting

    def other_flavors(self, entry: CycleEntry, admission: QuotaAssignment) -> Assignment | None:
        """With none of the flavors on whose nodes there are no places."""
        entry.barred |= {flavor for each in admission.pod_sets for flavor in each.flavors.values()}
        self._nominator.without(entry, entry.barred)
        found = entry.assignment
        return found if found is not None and (found.mode is Mode.FIT or entry.victims) else None

    def capacity_victims(self, entry: CycleEntry, assignment: Assignment, admission: QuotaAssignment) -> list[Victim]:
        """Victims whose eviction frees places for the pods, among those that may be preempted for quota."""

        def has_places() -> bool:
            return self._granting.would_fit_without_victims(entry.waiting.facts, admission)

        return self._nominator.victims(entry.waiting, entry.queue, assignment, has_places)

    def smaller(self, entry: CycleEntry, assignment: Assignment) -> Assignment | None:
        """With fewer pods, where it may start so, and has quota and places then."""
        if entry.is_cut or all(each.min_count is None for each in entry.waiting.facts.pod_sets):
            return None
        entry.is_cut = True

        def has_places(found: Assignment) -> bool:
            return self._granting.has_places(entry, self._granting.admission(entry, found))

        return self._nominator.smaller(entry, assignment, has_places)
