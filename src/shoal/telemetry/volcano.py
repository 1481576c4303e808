"""Measures Volcano's queues and the sessions that decide about them, under the names of Volcano's documentation.

The state of queues is read at each scrape from the last session. Durations and evictions are those of the cycles that
had a session. Amounts have Volcano's units: thousandths of a core, bytes, and thousandths of each other resource.

Rejected: the latency of plugins, which are asked in between and not timed, and the series for each job and namespace,
which grow without bound; what pods wait is counted under the names of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from shoal.api.resources import CPU, MEMORY, PODS
from shoal.engine.queues.disciplines.volcano.amounts import GPU, Figures
from shoal.engine.queues.disciplines.volcano.discipline import CLOSE, OPEN
from shoal.engine.queues.disciplines.volcano.queue_shares import QueueShares, queue_shares
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.prometheus.families import MetricHead
from shoal.prometheus.registry import Figures as Samples
from shoal.prometheus.registry import Registry

_QUEUE, _RESOURCE = ("queue_name",), ("queue_name", "resource")
_MILLI = 1000.0
_BOUNDS_MS = tuple(5.0 * 2**step for step in range(12))
_PREEMPT = "preempt"
_PHASES = ("Pending", "Inqueue", "Running", "Unknown")
_Read = Callable[[Session, QueueShares, str], Figures]
_AMOUNTS: tuple[tuple[str, str, str, _Read], ...] = (
    ("allocated", "milli_cpu", "Allocated", lambda _session, shares, _name: shares.allocated),
    ("request", "milli_cpu", "Requested, allocated and pending,", lambda _session, shares, _name: shares.request),
    ("deserved", "milli_cpu", "Deserved", lambda _session, shares, _name: shares.deserved),
    ("capacity", "mill_cpu", "Capability", lambda session, _, name: session.forest.queues[name].capability),
    ("real_capacity", "mill_cpu", "Real capability", lambda _session, shares, _name: shares.real_capability),
    ("inqueue", "milli_cpu", "Admitted and not yet allocated", lambda _session, shares, _name: shares.inqueue),
)
"""What is measured, Volcano's word for its CPU (two of them are written `mill_cpu`), and the description."""


class VolcanoSource(Protocol):
    @property
    def session(self) -> Session | None:
        """The last one; None while Volcano itself decides."""
        ...

    def group_phases(self) -> Mapping[tuple[str, str], int]:
        """The number of groups by queue and phase."""
        ...


class VolcanoMetrics:
    """The source is replaced when another scheduling loop begins; the counts go on."""

    def __init__(self, registry: Registry) -> None:
        self._source: VolcanoSource | None = None
        for name, cpu, words, read in _AMOUNTS:
            self._reads_amounts(registry, name, cpu, words, read)
        for name, words, figure in (
            ("share", "The largest allocated part of what a queue deserves.", lambda _, shares, __: shares.share),
            ("weight", "Weight of a queue.", lambda session, _, name: session.forest.queues[name].weight),
            ("overused", "1 if a queue has used up its share.", _is_overused),
        ):
            registry.reads(MetricHead("gauge", f"volcano_queue_{name}", words, _QUEUE), self._each_queue(figure))
        for phase in _PHASES:
            head = MetricHead(
                "gauge", f"volcano_queue_pod_group_{phase.lower()}_count", f"PodGroups that are {phase}.", _QUEUE
            )
            registry.reads(head, self._groups(phase))
        registry.reads(
            MetricHead("gauge", "volcano_unschedule_job_counts", "Jobs of which pods found no node or no quota.", ()),
            self._unscheduled,
        )
        self._whole = registry.histogram(
            "volcano_e2e_scheduling_latency_milliseconds", "Duration of a session.", _BOUNDS_MS
        )
        self._opening = registry.histogram(
            "volcano_open_session_duration_milliseconds", "How long a session read queues and jobs.", _BOUNDS_MS
        )
        self._actions = registry.histogram(
            "volcano_action_scheduling_latency_milliseconds", "Duration of an action.", _BOUNDS_MS, ("action",)
        )
        self._victims = registry.gauge(
            "volcano_pod_preemption_victims", "Pods that the action preempt evicted last, for all of its jobs."
        )
        # Counts whose names do not end in _total are no counters in OpenMetrics.
        self._attempts = registry.gauge(
            "volcano_total_preemption_attempts", "Jobs for which the action preempt evicted pods."
        )
        self._transactions = registry.counter(
            "volcano_eviction_transactions_total", "Jobs for which an action evicted pods.", ("action",)
        )

    def follow(self, source: VolcanoSource) -> None:
        self._source = source

    def observe(self, seconds: Mapping[str, float], victims: Mapping[str, Mapping[str, int]]) -> None:
        """The durations of the steps of a session, and the evicted pods, by action and by the job that they go for."""
        self._whole.of().observe(_ms(sum(seconds.values())))
        self._opening.of().observe(_ms(seconds.get(OPEN, 0.0)))
        for action, length_s in seconds.items():
            if action not in (OPEN, CLOSE):
                self._actions.of(action).observe(_ms(length_s))
        for action, by_job in victims.items():
            self._transactions.of(action).inc(len(by_job))
            if action == _PREEMPT:
                self._attempts.of().add(len(by_job))
                self._victims.of().set(sum(by_job.values()))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _reads_amounts(self, registry: Registry, name: str, cpu: str, words: str, read: _Read) -> None:
        def plain(resource: str) -> Callable[[], Samples]:
            return self._each_queue(lambda session, shares, queue: read(session, shares, queue).get(resource, 0.0))

        def scalar() -> Samples:
            return [
                ((queue, resource), amount if resource == GPU else amount * _MILLI)
                for session, queue, shares in self._rows()
                for resource, amount in sorted(read(session, shares, queue).items())
                if resource not in (CPU, MEMORY, PODS)
            ]

        head = f"volcano_queue_{name}_"
        registry.reads(MetricHead("gauge", head + cpu, f"{words} CPU, in thousandths of a core.", _QUEUE), plain(CPU))
        registry.reads(MetricHead("gauge", head + "memory_bytes", f"{words} memory.", _QUEUE), plain(MEMORY))
        words = f"{words} amounts of other resources, in thousandths."
        registry.reads(MetricHead("gauge", head + "scalar_resources", words, _RESOURCE), scalar)

    def _rows(self) -> Iterator[tuple[Session, str, QueueShares]]:
        session = self._source.session if self._source is not None else None
        if session is None:
            return
        for name, shares in sorted(queue_shares(session).items()):
            yield session, name, shares

    def _each_queue(self, read: Callable[[Session, QueueShares, str], float]) -> Callable[[], Samples]:
        return lambda: [((name,), float(read(session, shares, name))) for session, name, shares in self._rows()]

    def _groups(self, phase: str) -> Callable[[], Samples]:
        def counts() -> Samples:
            source = self._source
            if source is None or source.session is None:
                return []
            found = source.group_phases()
            return [((name,), float(found.get((name, phase), 0))) for name in sorted(source.session.forest.queues)]

        return counts

    def _unscheduled(self) -> Samples:
        session = self._source.session if self._source is not None else None
        return [] if session is None else [((), float(sum(bool(job.pending) for job in session.jobs.values())))]


def _is_overused(session: Session, _shares: QueueShares, name: str) -> float:
    """A queue without jobs has no share to use up."""
    return float(name in session.accounts.in_use and session.is_overused(name))


def _ms(seconds: float) -> float:
    return seconds * 1000
