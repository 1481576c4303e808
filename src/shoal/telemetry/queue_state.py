"""The current state of queues for metrics, read from the admission discipline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import PODS, Amounts, LocalQueueFacts, Usage
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.queue_counts import AllQueueCounts, QueueCounts, WorkloadState, count_queues, is_pending
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.shares import share_of
from shoal.engine.queues.workloads import totals_of
from shoal.telemetry.queue_levels import CohortFigure, QueueFigure, QuotaFigure
from shoal.telemetry.unadmitted import UnadmittedFigure

_MILLI = 1000.0
_NO_RESERVATION, _DELAYED = "NoReservation", "PendingDelayedTopologyRequests"


class ConditionState(Protocol):
    @property
    def is_true(self) -> bool: ...

    @property
    def reason(self) -> str: ...


class WorkloadConditions(WorkloadState, Protocol):
    """What the metrics read of a Workload."""

    @property
    def is_terminating(self) -> bool: ...

    def mark(self, name: str) -> ConditionState:
        """Its condition of that type."""
        ...


class WorkloadCache(Protocol):
    def views(self) -> Sequence[WorkloadConditions]: ...


class AdmissionDiscipline(Protocol):
    @property
    def kueue(self) -> Kueue: ...

    def measure(self, around: Callable[[Callable[[], Decisions]], Decisions]) -> None:
        """Each cycle is called through `around`."""
        ...


class QueueLevels:
    """The queues and cohorts of an admission discipline, as `QueueSource` for the metrics."""

    def __init__(self, discipline: AdmissionDiscipline, workloads: WorkloadCache, now_s: Callable[[], float]) -> None:
        self._discipline = discipline
        self._workloads = workloads
        self._now_s = now_s
        self._counts = AllQueueCounts()
        self._finished: Counter[str] = Counter()
        self._active: Counter[str] = Counter()
        """Both by local queue."""
        self._wanted: dict[str, Amounts] = {}
        self._unadmitted: Counter[tuple[str, str, str]] = Counter()

    def cluster_queues(self) -> Iterator[QueueFigure]:
        self._count()
        queues = self._discipline.kueue.queues
        active, finished = self._by_cluster_queue(self._active), self._by_cluster_queue(self._finished)
        for name, queue in queues.cluster_queues.items():
            figures = self._counts.cluster_queues.get(name, QueueCounts())
            parent, root = _above(queue)
            yield QueueFigure(
                name,
                cohort=parent,
                state="active" if queue.closed is None else "pending",
                active=min(active[name], figures.pending),
                inadmissible=max(0, figures.pending - active[name]),
                reserving=figures.reserving,
                admitted=figures.admitted,
                finished=finished[name],
                share=self._share(queue),
                parent=parent,
                root=root,
                wait_slo_s=queue.facts.wait_slo_s,
                wanted=tuple((each, _amount(each, much)) for each, much in self._wanted.get(name, {}).items()),
                quotas=tuple(_quotas(queue, figures)),
            )

    def local_queues(self) -> Iterator[QueueFigure]:
        """The state at the moment of the last `cluster_queues()`."""
        queues = self._discipline.kueue.queues
        for key, local in queues.local_queues.items():
            figures = self._counts.local_queues.get(key, QueueCounts())
            queue = queues.cluster_queues.get(local.cluster_queue)
            namespace, _, name = key.partition("/")
            yield QueueFigure(
                name,
                namespace,
                active=min(self._active[key], figures.pending),
                inadmissible=max(0, figures.pending - self._active[key]),
                reserving=figures.reserving,
                admitted=figures.admitted,
                finished=self._finished[key],
                is_open=local.stop == "None" and queue is not None and queue.closed is None,
                used=self._used(local, queue),
                quotas=() if queue is None else tuple(_quotas(queue, figures)),
            )

    def cohorts(self) -> Iterator[CohortFigure]:
        """The state at the moment of the last `cluster_queues()`."""
        queues = self._discipline.kueue.queues
        admitted: Counter[str] = Counter()
        reserved: dict[str, Usage] = {}
        for name, figures in self._counts.cluster_queues.items():
            for above in self.above(name):
                admitted[above] += figures.admitted
                total = reserved.setdefault(above, {})
                for fr, amount in figures.reserved.items():
                    total[fr] = total.get(fr, 0) + amount
        for name, cohort in queues.cohorts.items():
            held = reserved.get(name, {})
            parent, root = _above(cohort)
            yield CohortFigure(
                name,
                parent,
                root or name,
                admitted[name],
                self._share(cohort),
                tuple(
                    (flavor, resource, _amount(resource, quota), _amount(resource, held.get((flavor, resource), 0)))
                    for (flavor, resource), quota in cohort.subtree.items()
                ),
            )

    def unadmitted(self) -> Iterator[UnadmittedFigure]:
        """The state at the moment of the last `cluster_queues()`."""
        local_queues = self._discipline.kueue.queues.local_queues
        for (queue, reason, cause), count in self._unadmitted.items():
            namespace, _, name = queue.partition("/")
            local = local_queues.get(queue)
            yield UnadmittedFigure(
                (name, namespace), "" if local is None else local.cluster_queue, reason, cause, count
            )

    def above(self, cluster_queue: str) -> Iterable[str]:
        queue = self._discipline.kueue.queues.cluster_queues.get(cluster_queue)
        return () if queue is None else [cohort.name for cohort in queue.path_up()]

    # internals

    def _count(self) -> None:
        kueue, workloads = self._discipline.kueue, self._workloads.views()
        queues = kueue.queues
        self._counts = count_queues(queues, workloads)
        self._active = Counter(state.queue for state in kueue.states() if state.state == "active")
        self._finished = Counter(workload.queue for workload in workloads if workload.is_finished)
        self._unadmitted = Counter(
            (workload.queue, *why_unadmitted(workload))
            for workload in workloads
            if not workload.mark("Admitted").is_true and is_open(workload)
        )
        self._wanted = {}
        for workload in workloads:
            local = queues.local_queues.get(workload.queue) if is_pending(queues, workload) else None
            if local is None or local.stop != "None" or workload.facts is None:
                continue
            wanted = self._wanted.setdefault(local.cluster_queue, {})
            queue = queues.cluster_queues.get(local.cluster_queue)
            counts_pods = queue is not None and PODS in queue.group_of
            for total in totals_of(workload.facts):
                for resource, amount in total.requests.items():
                    if resource != PODS or counts_pods:
                        wanted[resource] = wanted.get(resource, 0) + amount

    def _by_cluster_queue(self, counts: Counter[str]) -> Counter[str]:
        found: Counter[str] = Counter()
        for key, count in counts.items():
            local = self._discipline.kueue.queues.local_queues.get(key)
            if local is not None:
                found[local.cluster_queue] += count
        return found

    def _share(self, node: CohortNode) -> float | None:
        return share_of(node).weighted if self._discipline.kueue.queues.settings.fair_sharing else None

    def _used(self, local: LocalQueueFacts, queue: ClusterQueue | None) -> float | None:
        usage = self._discipline.kueue.usage
        if not usage.is_on or queue is None or not queue.facts.by_usage:
            return None
        return usage.seen(local.key, self._now_s())


def is_open(workload: WorkloadConditions) -> bool:
    return not (workload.is_finished or workload.is_terminating)


def why_unadmitted(workload: WorkloadConditions) -> tuple[str, str]:
    """Reason and underlying cause; no condition means a workload that was not considered yet."""
    reserved, admitted = workload.mark("QuotaReserved"), workload.mark("Admitted")
    if not reserved.is_true:
        return _NO_RESERVATION, reserved.reason or "PendingEvaluation"
    reason = admitted.reason or "UnsatisfiedAdmissionChecks"
    return reason, "PendingTopology" if reason == _DELAYED else "ChecksNotReady"


def _above(node: CohortNode) -> tuple[str, str]:
    """The parent cohort and the root cohort; empty if there is none."""
    names = [cohort.name for cohort in node.path_up()]
    return (names[0], names[-1]) if names else ("", "")


def _quotas(queue: ClusterQueue, figures: QueueCounts) -> Iterator[QuotaFigure]:
    for group in queue.facts.groups:
        for flavor in group.flavors:
            for resource, quota in flavor.quotas.items():
                yield QuotaFigure(
                    flavor.name,
                    resource,
                    _amount(resource, _used(figures.reserved, flavor.name, resource)),
                    _amount(resource, _used(figures.used, flavor.name, resource)),
                    _amount(resource, quota.nominal),
                    None if quota.borrowing is None else _amount(resource, quota.borrowing),
                    None if quota.lending is None else _amount(resource, quota.lending),
                )


def _used(usage: Usage, flavor: str, resource: str) -> int:
    return usage.get((flavor, resource), 0)


def _amount(resource: str, amount: int) -> float:
    return amount / _MILLI if resource == "cpu" else float(amount)
