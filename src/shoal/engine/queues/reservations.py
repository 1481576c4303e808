"""Reserves a start for the first workload that has to wait, which later ones must not delay (backfill).

In each tree of queues, one workload at most has a reservation: the first in order that was turned away for want of
capacity. Its start is when enough of what runs will have ended, by what is known of durations. Smaller work behind it
is admitted only if it ends before, or if the first would still start then. Work of unknown length is taken to run for
ever, and so is never a reason to promise a start.

Rejected: a reservation for each pending workload (conservative backfill). Each change of one moves all behind it, and
only the first is of use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.durations import Durations
from shoal.engine.queues.entry import CycleEntry
from shoal.engine.queues.facts import QuotaAssignment
from shoal.engine.queues.flavors.assigner import assign
from shoal.engine.queues.flavors.modes import Mode, PreemptionPossibility
from shoal.engine.queues.order import classical_rank
from shoal.engine.queues.proof import Prover
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topologies import Topologies
from shoal.engine.queues.workloads import PendingWorkload, usage_of

NEEDS_ROOM = frozenset({Wait.QUOTA, Wait.TOPOLOGY})
QueueOf = Callable[[str], str]
"""Workload -> the cluster queue in whose line it is; empty where in none."""


class Reservation(msgspec.Struct, frozen=True):
    """The reserved start of one workload."""

    workload: str
    start_s: float
    ending: tuple[str, ...]
    """The workloads that will have ended by then."""


@dataclass(slots=True)
class Reservations:
    """One per tree."""

    queues: Queues
    durations: Durations
    by_root: dict[CohortNode, tuple[CycleEntry, Reservation]] = field(default_factory=dict)
    prover: Prover | None = None
    """Where nodes are known, they have a say in when there is capacity."""

    def of(self, workload: str) -> Reservation | None:
        return next((each for _, each in self.by_root.values() if each.workload == workload), None)

    def renew(self, refused: Iterable[CycleEntry], now_s: float, queue_of: QueueOf) -> list[CohortNode]:
        """Keep what was promised to those that still wait, and promise what is free to be promised; the roots of trees
        in which the promise is another one now, so that those it held back look again."""
        before = {entry.queue.root: known for entry, known in self.by_root.values()}
        first: dict[CohortNode, CycleEntry] = {}
        for entry in [entry for entry, _ in self.by_root.values()] + [e for e in refused if e.why in NEEDS_ROOM]:
            root = entry.queue.root
            if self._may_wait(entry, queue_of) and (root not in first or _rank(entry) <= _rank(first[root])):
                first[root] = entry
        self.by_root = {}
        for root, entry in first.items():
            found = self._earliest(entry.waiting, entry.queue, now_s)
            if found is not None:
                self.by_root[root] = (entry, found)
        return [root for root, known in before.items() if self._nominated(root) != known]

    def forget(self, workload: str) -> CohortNode | None:
        """Remove the reservation of an admitted or deleted workload; returns the root of its tree."""
        for root, (_, known) in list(self.by_root.items()):
            if known.workload == workload:
                del self.by_root[root]
                return root
        return None

    def _may_wait(self, entry: CycleEntry, queue_of: QueueOf) -> bool:
        """Whether it still is in the line of its queue, and that queue admits."""
        queue = entry.queue
        is_there = self.queues.cluster_queues.get(queue.name) is queue and queue.closed is None
        key = entry.waiting.key
        return is_there and key not in self.queues.held and queue_of(key) == queue.name

    def _nominated(self, root: CohortNode) -> Reservation | None:
        found = self.by_root.get(root)
        return None if found is None else found[1]

    def delayed_by(self, entry: CycleEntry, admission: QuotaAssignment, now_s: float) -> Reservation | None:
        """The reservation that admitting it now would break."""
        known = self.by_root.get(entry.queue.root)
        if known is None or known[1].workload == entry.waiting.key or _rank(entry) < _rank(known[0]):
            return None
        first, reservation = known
        length = self.durations.expected_s(entry.waiting.facts)
        if length is not None and now_s + length <= reservation.start_s:
            return None
        usage = usage_of(admission)
        stand_in = AdmittedWorkload(entry.waiting.facts, admission, entry.queue, usage, entry.waiting.stamp_s)
        held = self.queues.held
        removed = self.queues.remove_all_usage(held[key] for key in reservation.ending if key in held)
        self.queues.add_usage(stand_in)
        fits = self._fits(first.waiting, first.queue, removed)
        self.queues.remove_usage(stand_in)
        self.queues.add_all_usage(removed)
        return None if fits else reservation

    def _earliest(self, waiting: PendingWorkload, queue: ClusterQueue, now_s: float) -> Reservation | None:
        """The first moment at which what will have ended leaves enough capacity."""
        ends = sorted(self._ends(queue.root, now_s), key=lambda end: (end[0], end[1].key))
        removed: list[AdmittedWorkload] = []
        found: Reservation | None = None
        for index, (end_s, held) in enumerate(ends):
            self.queues.remove_usage(held)
            removed.append(held)
            is_last = index + 1 == len(ends) or ends[index + 1][0] > end_s
            if is_last and self._fits(waiting, queue, removed):
                found = Reservation(waiting.key, end_s, tuple(each.key for each in removed))
                break
        self.queues.add_all_usage(removed)
        return found

    def _ends(self, root: CohortNode, now_s: float) -> Iterable[tuple[float, AdmittedWorkload]]:
        for queue in self.queues.leaves_of(root):
            for held in queue.held.values():
                length = self.durations.expected_s(held.facts)
                if held.evicted:
                    yield now_s, held
                elif length is not None:
                    # Who waits for checks has not begun.
                    began_s = held.facts.admitted_s if held.facts.admitted else now_s
                    yield max(now_s, began_s + length), held

    def _fits(self, waiting: PendingWorkload, queue: ClusterQueue, removed: list[AdmittedWorkload]) -> bool:
        assignment = assign(self.queues, queue, waiting.facts, waiting.totals, _no_preemption)
        if assignment.mode is not Mode.FIT:
            return False
        Topologies(self.queues).complete(queue, waiting.facts, assignment)
        if assignment.mode is not Mode.FIT or self.prover is None:
            return assignment.mode is Mode.FIT
        return self.prover.would_fit(waiting.facts, assignment.admission(queue.name), [held.key for held in removed])


def _rank(entry: CycleEntry) -> tuple[int, float, str, str]:
    return classical_rank(entry, by_priority=True)[1:]


def _no_preemption(*_: object) -> PreemptionPossibility:
    return PreemptionPossibility(Mode.NO_CANDIDATES, 0)
