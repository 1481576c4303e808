"""What is measured of queues and workloads, under Kueue's names.

Levels (who waits, who holds how much) are looked up when somebody reads; they come from whoever decides, as the values
below. What happens to workloads is counted from their conditions as they change, so that it counts the same whoever
writes them, and a restart counts nothing twice.

Kueue puts the label `replica_role` on everything: `leader`, or `standalone` without an election.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol

import msgspec

from shoal.telemetry.families import Head, Values, exponential
from shoal.telemetry.registry import Registry

WAITS = (1.0, *exponential(2.5, 2, 13))
Role = Literal["leader", "standalone"]
_ROLE = "replica_role"
_STATES = ("pending", "active", "terminating")


class QuotaFigure(msgspec.Struct, frozen=True):
    """One resource in one flavor; amounts in the resource's unit (cores, bytes, pieces)."""

    flavor: str
    resource: str
    reserved: float = 0.0
    used: float = 0.0
    nominal: float = 0.0
    borrowing: float | None = None
    """None: as much as there is."""
    lending: float | None = None


class QueueFigure(msgspec.Struct, frozen=True):
    """A cluster queue, or a local queue with its namespace."""

    name: str
    namespace: str = ""
    cohort: str = ""
    state: Literal["pending", "active", "terminating"] = "active"
    active: int = 0
    """Workloads that wait for their turn."""
    inadmissible: int = 0
    """Workloads that were turned away, until something changes."""
    reserving: int = 0
    admitted: int = 0
    share: float | None = None
    quotas: tuple[QuotaFigure, ...] = ()


class QueueSource(Protocol):
    """Who knows the queues as they are now."""

    def cluster_queues(self) -> Iterable[QueueFigure]: ...

    def local_queues(self) -> Iterable[QueueFigure]: ...


class Happened(msgspec.Struct, frozen=True):
    """Something that happened to a workload, with what the labels say of it."""

    what: Literal["quota_reserved", "admitted", "evicted", "preempted", "ready", "finished"]
    cluster_queue: str
    priority_class: str = ""
    reason: str = ""
    cause: str = ""
    by: str = ""
    """The cluster queue for which it was preempted."""
    is_first: bool = False
    """Of evictions for this reason."""
    waited_s: float | None = None
    """Since it was queued, or for `finished` since it was admitted."""
    since_before_s: float | None = None
    """Since the step before: from quota to admission, from admission to readiness."""


Level = tuple[str, str, tuple[str, ...], Callable[[QueueFigure], Iterable[tuple[Values, float]]]]


class QueueMetrics:
    def __init__(self, registry: Registry, role: Role) -> None:
        self._role = role
        self._registry = registry
        whose = ("cluster_queue", "priority_class", _ROLE)

        def counted(name: str, words: str) -> tuple[str, str, tuple[str, ...]]:
            return f"kueue_{name}_total", words, whose

        self._reserved = registry.counter(*counted("quota_reserved_workloads", "Workloads that were given quota."))
        self._admitted = registry.counter(*counted("admitted_workloads", "Workloads that were admitted."))
        self._finished = registry.counter(*counted("finished_workloads", "Workloads that finished."))
        why = ("cluster_queue", "reason", "underlying_cause", "priority_class", _ROLE)
        self._evicted = registry.counter("kueue_evicted_workloads_total", "Evictions of workloads.", why)
        self._evicted_once = registry.counter(
            "kueue_evicted_workloads_once_total", "Workloads that were evicted for that reason the first time.", why
        )
        self._preempted = registry.counter(
            "kueue_preempted_workloads_total",
            "Workloads that had to yield, by the cluster queue they yielded to.",
            ("preempting_cluster_queue", "reason", _ROLE),
        )
        self._attempts = registry.counter(
            "kueue_admission_attempts_total", "Cycles of admission, by whether they admitted.", ("result", _ROLE)
        )
        self._attempt_seconds = registry.histogram(
            "kueue_admission_attempt_duration_seconds",
            "How long cycles of admission took.",
            exponential(0.001, 2, 14),
            ("result", _ROLE),
        )
        self._waits = {
            name: registry.histogram(f"kueue_{name}_time_seconds", words, WAITS, whose)
            for name, words in (
                ("quota_reserved_wait", "From being queued until quota was reserved."),
                ("admission_wait", "From being queued until admission."),
                ("admission_checks_wait", "From the reservation of quota until admission."),
                ("ready_wait", "From being queued until all pods were ready."),
                ("admitted_until_ready_wait", "From admission until all pods were ready."),
                ("execution", "From admission until the end."),
            )
        }

    def happened(self, what: Happened) -> None:
        whose = (what.cluster_queue, what.priority_class, self._role)
        if what.what == "quota_reserved":
            self._reserved.of(*whose).inc()
            self._wait("quota_reserved_wait", whose, what.waited_s)
        elif what.what == "admitted":
            self._admitted.of(*whose).inc()
            self._wait("admission_wait", whose, what.waited_s)
            self._wait("admission_checks_wait", whose, what.since_before_s)
        elif what.what == "ready":
            self._wait("ready_wait", whose, what.waited_s)
            self._wait("admitted_until_ready_wait", whose, what.since_before_s)
        elif what.what == "finished":
            self._finished.of(*whose).inc()
            self._wait("execution", whose, what.waited_s)
        elif what.what == "preempted":
            self._preempted.of(what.by, what.reason, self._role).inc()
        else:
            why = (what.cluster_queue, what.reason, what.cause, what.priority_class, self._role)
            self._evicted.of(*why).inc()
            if what.is_first:
                self._evicted_once.of(*why).inc()

    def cycle_done(self, seconds: float, *, admitted: bool) -> None:
        result = "success" if admitted else "inadmissible"
        self._attempts.of(result, self._role).inc()
        self._attempt_seconds.of(result, self._role).observe(seconds)

    def follow(self, source: QueueSource) -> None:
        """Whose levels are told; whoever follows later is told instead."""
        found: dict[str, list[QueueFigure]] = {"": [], "local_queue_": []}

        def look() -> None:
            found[""], found["local_queue_"] = list(source.cluster_queues()), list(source.local_queues())

        self._registry.before_reading("queues", look)
        for prefix, rows in (("", _OF_CLUSTER_QUEUES), ("local_queue_", _OF_LOCAL_QUEUES)):
            own = ("name", "namespace") if prefix else ("cluster_queue",)
            for name, words, labels, numbers in rows:
                head = Head("gauge", f"kueue_{prefix}{name}", words, (*own, *labels, _ROLE))
                self._registry.reads(head, _reader(found, prefix, numbers, self._role))

    def _wait(self, name: str, whose: tuple[str, ...], seconds: float | None) -> None:
        if seconds is not None:
            self._waits[name].of(*whose).observe(max(0.0, seconds))


def _reader(
    found: dict[str, list[QueueFigure]],
    prefix: str,
    numbers: Callable[[QueueFigure], Iterable[tuple[Values, float]]],
    role: str,
) -> Callable[[], Iterator[tuple[Values, float]]]:
    def read() -> Iterator[tuple[Values, float]]:
        for figure in found[prefix]:
            own = (figure.name, figure.namespace) if prefix else (figure.name,)
            for values, number in numbers(figure):
                yield (*own, *values, role), number

    return read


def _pending(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [(("active",), figure.active), (("inadmissible",), figure.inadmissible)]


def _state(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [((state,), float(state == figure.state)) for state in _STATES]


def _share(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [] if figure.share is None else [((figure.cohort,), figure.share)]


def _of_quotas(
    number: Callable[[QuotaFigure], float], *, has_cohort: bool
) -> Callable[[QueueFigure], Iterator[tuple[Values, float]]]:
    def read(figure: QueueFigure) -> Iterator[tuple[Values, float]]:
        cohort = (figure.cohort,) if has_cohort else ()
        for quota in figure.quotas:
            yield (*cohort, quota.flavor, quota.resource), number(quota)

    return read


def _unless_endless(limit: float | None) -> float:
    return math.inf if limit is None else limit


_WHERE = ("flavor", "resource")
_IN_COHORT = ("cohort", *_WHERE)
_LEVELS: tuple[Level, ...] = (
    ("pending_workloads", "Workloads that wait, by whether they are to be tried again.", ("status",), _pending),
    ("reserving_active_workloads", "Workloads that hold quota.", (), lambda figure: [((), figure.reserving)]),
    ("admitted_active_workloads", "Workloads that are admitted.", (), lambda figure: [((), figure.admitted)]),
)
_OF_CLUSTER_QUEUES: tuple[Level, ...] = (
    *_LEVELS,
    ("cluster_queue_status", "1 for the state that the queue is in.", ("status",), _state),
    ("cluster_queue_weighted_share", "Borrowed quota by the queue's weight, 0 without borrowing.", ("cohort",), _share),
    *(
        (f"cluster_queue_{name}", words, _IN_COHORT, _of_quotas(number, has_cohort=True))
        for name, words, number in (
            ("resource_reservation", "What is reserved.", lambda quota: quota.reserved),
            ("resource_usage", "What is used by those who are admitted.", lambda quota: quota.used),
            ("nominal_quota", "The queue's own quota.", lambda quota: quota.nominal),
            ("borrowing_limit", "How much more it may use.", lambda quota: _unless_endless(quota.borrowing)),
            ("lending_limit", "How much others may use of it.", lambda quota: _unless_endless(quota.lending)),
        )
    ),
)
_OF_LOCAL_QUEUES: tuple[Level, ...] = (
    *_LEVELS,
    ("resource_reservation", "What is reserved.", _WHERE, _of_quotas(lambda quota: quota.reserved, has_cohort=False)),
    ("resource_usage", "What is used.", _WHERE, _of_quotas(lambda quota: quota.used, has_cohort=False)),
)
