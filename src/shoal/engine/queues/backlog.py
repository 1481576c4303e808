"""Stores all pending workloads: queued in their cluster queue, or inadmissible with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from msgspec import structs

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.entry import PendingState
from shoal.engine.queues.equivalence_class import ReportedReason
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.pending_workloads import LocalUse, PendingWorkloads
from shoal.engine.queues.quiescence import ActiveTrees
from shoal.engine.queues.readiness import stamp_of
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.engine.queues.workloads import PendingWorkload, QueueingKey, Total, digest_of, totals_of

_HASHING = "SchedulingEquivalenceHashing"
_NOT_YET: ReportedReason = (Wait.PENDING, "Not looked at yet")
_MOST_SHAPES = 10_000


class Backlog:
    """Pending workloads over the facts of the queues. `watch` receives the queues with an active workload."""

    def __init__(self, queues: Queues, watch: ActiveTrees) -> None:
        self._queues = queues
        self._active_trees = watch
        self._pending: dict[str, PendingWorkloads] = {}
        self._queue_of: dict[str, str] = {}
        """Workload -> the cluster queue in which it is pending."""
        self._unqueued: dict[str, tuple[WorkloadFacts, Wait, str]] = {}
        """Workloads that are pending in no cluster queue, and why."""
        self._later: list[tuple[float, str]] = []
        """(end, workload) of backoffs; entries of workloads that changed meanwhile are skipped."""
        self._reported: dict[str, ReportedReason] = {}
        """Why a workload that is still active was refused last."""
        self._shapes: dict[bytes, tuple[Total, ...]] = {}

    def put(self, facts: WorkloadFacts, now_s: float) -> None:
        """Add a pending workload."""
        name, why, message = self._place_of(facts, now_s)
        if name is None:
            self._unqueued[facts.key] = (facts, why, message)
            return
        queue = self._queues.cluster_queues[name].facts
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = PendingWorkloads(is_strict=queue.strategy == "StrictFIFO")
        shape = digest_of((facts.pod_sets, facts.reclaimable))
        # Where usage decides the order, the workloads of one local queue form a class.
        share = facts.queue if queue.by_usage else ""
        # A replacement requests less than its equivalence class.
        has_class = _HASHING in self._queues.settings.gates and not facts.replaces
        label_key = QueueingKey(facts.priority, shape, share) if has_class else None
        self._queue_of[facts.key] = name
        stamp_s = stamp_of(self._queues.settings, facts)
        if pending.add(PendingWorkload(facts, self._totals(shape, facts), stamp_s, label_key=label_key)):
            self._active_trees.add(name)

    def get(self, key: str) -> WorkloadFacts | None:
        """The facts of a pending workload."""
        unqueued = self._unqueued.get(key)
        if unqueued is not None:
            return unqueued[0]
        pending = self._pending.get(self._queue_of.get(key, ""))
        waiting = pending.get(key) if pending is not None else None
        return None if waiting is None else waiting.facts

    def over_budget(self, key: str) -> str:
        """The message of a workload that waits for its budget; empty for any other."""
        _, why, message = self._unqueued.get(key, (None, Wait.PENDING, ""))
        return message if why is Wait.OVER_BUDGET else ""

    def queue_of(self, key: str) -> str:
        """The cluster queue in which it is pending; empty if in none."""
        return self._queue_of.get(key, "")

    def remove(self, key: str) -> None:
        """Remove a workload; the next one becomes the head."""
        self._unqueued.pop(key, None)
        name = self._queue_of.pop(key, "")
        pending = self._pending.get(name)
        if pending is not None:
            pending.remove(key)
            self._active_trees.stir(name)

    def admitted(self, key: str) -> None:
        """The head that was popped was admitted and does not return."""
        self._pending[self._queue_of.pop(key)].admitted()
        self._reported.pop(key, None)

    def forget(self, key: str) -> None:
        """Remove a deleted workload and its reported reason."""
        self.remove(key)
        self._reported.pop(key, None)

    def report(self, key: str, reported: ReportedReason) -> None:
        self._reported[key] = reported

    def reported_of(self, key: str) -> ReportedReason | None:
        """Why a pending workload was refused last; None if it was not tried yet."""
        pending = self._pending.get(self._queue_of.get(key, ""))
        return None if pending is None else pending.reported_of(key) or self._reported.get(key)

    def pending_of(self, cluster_queue: str) -> PendingWorkloads | None:
        return self._pending.get(cluster_queue)

    def head(self, cluster_queue: str, local_use: LocalUse | None) -> PendingWorkload | None:
        """Take out the head; None if there is none, or the queue admits no workloads."""
        queue, pending = self._queues.cluster_queues.get(cluster_queue), self._pending.get(cluster_queue)
        if queue is None or pending is None or queue.closed is not None:
            return None
        return pending.pop(local_use if queue.facts.by_usage else None)

    def queue_inadmissible(self, cluster_queue: str) -> None:
        """Make the inadmissible workloads of a cluster queue active again."""
        pending = self._pending.get(cluster_queue)
        if pending is not None and pending.queue_inadmissible():
            self._active_trees.add(cluster_queue)

    def next_s(self) -> float | None:
        """When the next backoff ends."""
        return self._later[0][0] if self._later else None

    def end_backoffs(self, now_s: float) -> None:
        """Queue the workloads whose backoff has ended."""
        while self._later and self._later[0][0] <= now_s:
            _, key = heappop(self._later)
            unqueued = self._unqueued.get(key)
            if unqueued is not None and unqueued[1] is Wait.OVER_BUDGET:
                # The period is over, or what was known about it is out of date.
                self.remove(key)
                self.put(unqueued[0], now_s)
            elif unqueued is not None and 0.0 < unqueued[0].requeue_at_s <= now_s:
                del self._unqueued[key]
                self.put(structs.replace(unqueued[0], requeue_at_s=0.0), now_s)

    def requeue_all(self, now_s: float) -> None:
        """Queues may have been added, removed, moved or resumed: all workloads are assigned again."""
        waiting = [each.facts for pending in self._pending.values() for each, _ in pending.each()]
        waiting += [facts for facts, _, _ in self._unqueued.values()]
        self._pending.clear()
        self._queue_of.clear()
        self._unqueued.clear()
        self._later.clear()
        self._shapes.clear()
        self._active_trees.regroup(self._queues)
        for facts in waiting:
            self.put(facts, now_s)

    def states(self) -> Iterator[StillWaiting]:
        """All pending workloads with their reasons; those not considered yet are active."""
        for name, pending in sorted(self._pending.items()):
            closed = self._queues.cluster_queues[name].closed if name in self._queues.cluster_queues else None
            members = list(pending.each())
            members.sort(key=lambda each: (-each[0].facts.priority, each[0].stamp_s, each[0].facts.uid, each[0].key))
            for waiting, active in members:
                state: PendingState = "active" if active else "inadmissible"
                why, message = pending.reported_of(waiting.key) or self._reported.get(waiting.key) or _NOT_YET
                if closed is not None:
                    why, message = Wait.ON_HOLD, f"ClusterQueue {name} {closed[1]}"
                yield StillWaiting(waiting.key, waiting.facts.queue, state, why, message)
        for key, (facts, why, message) in sorted(self._unqueued.items()):
            yield StillWaiting(key, facts.queue, "none", why, message)

    def _place_of(self, facts: WorkloadFacts, now_s: float) -> tuple[str | None, Wait, str]:
        """The cluster queue in which it is pending; or why in none."""
        if not facts.active:
            return None, Wait.ON_HOLD, "The workload is deactivated"
        if facts.closed_gates:
            return None, Wait.GATED, f"Held back by {', '.join(facts.closed_gates)}"
        local = self._queues.local_queues.get(facts.queue)
        if local is None:
            return None, Wait.MISCONFIGURED, f"LocalQueue {facts.queue} doesn't exist"
        if local.stop != "None":
            return None, Wait.ON_HOLD, f"LocalQueue {facts.queue} is stopped"
        if local.cluster_queue not in self._queues.cluster_queues:
            return None, Wait.MISCONFIGURED, f"ClusterQueue {local.cluster_queue} doesn't exist"
        if facts.requeue_at_s > now_s:
            heappush(self._later, (facts.requeue_at_s, facts.key))
            return None, Wait.PENDING, f"Waits {facts.requeue_at_s - now_s:.0f} s before it is tried again"
        over = self._queues.over_budget(facts, now_s)
        if over is not None:
            heappush(self._later, (self._queues.cost_budgets.until_s, facts.key))
            return None, Wait.OVER_BUDGET, over.message
        return local.cluster_queue, Wait.PENDING, ""

    def _totals(self, shape: bytes, facts: WorkloadFacts) -> tuple[Total, ...]:
        """Equal workloads share theirs."""
        totals = self._shapes.get(shape)
        if totals is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            totals = self._shapes[shape] = totals_of(facts)
        return totals
