"""Queues and cohorts as they are at a moment, under Kueue's names: read at each scrape.

The admission discipline provides them as the values below; nothing is kept between two scrapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Protocol

import msgspec

from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Registry
from shoal.telemetry.unadmitted import ROLE, UnadmittedFigure, follow_unadmitted

_STATES = ("pending", "active", "terminating")
_ANSWERS = ("True", "False", "Unknown")


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
    finished: int = 0
    """Workloads that are done, and still there."""
    share: float | None = None
    parent: str = ""
    """The cohort above, and the one above all."""
    root: str = ""
    is_open: bool = True
    """Of a local queue: whether workloads may be submitted to it."""
    used: float | None = None
    """Of a local queue with admission fair sharing: what it used lately."""
    wait_slo_s: float | None = None
    """Of a cluster queue: within which time workloads should get quota."""
    wanted: tuple[tuple[str, float], ...] = ()
    """Resources that those that wait ask for."""
    quotas: tuple[QuotaFigure, ...] = ()


class CohortFigure(msgspec.Struct, frozen=True):
    name: str
    parent: str = ""
    root: str = ""
    admitted: int = 0
    """Workloads of all queues below."""
    share: float | None = None
    quotas: tuple[tuple[str, str, float, float], ...] = ()
    """Flavor, resource, what the whole subtree has, and what is reserved of it."""


class QueueSource(Protocol):
    """Who knows the queues as they are now."""

    def cluster_queues(self) -> Iterable[QueueFigure]: ...

    def local_queues(self) -> Iterable[QueueFigure]: ...

    def cohorts(self) -> Iterable[CohortFigure]: ...

    def unadmitted(self) -> Iterable[UnadmittedFigure]: ...

    def above(self, cluster_queue: str) -> Iterable[str]:
        """The cohorts that it is in, of all levels."""
        ...


Level = tuple[str, str, tuple[str, ...], Callable[[Any], Iterable[tuple[Values, float]]]]
"""Name, words, labels beside the queue's own, and the numbers of one queue."""


def follow_levels(registry: Registry, role: str, source: QueueSource) -> None:
    """The source of the levels; a later one replaces it."""
    found: dict[str, list[Any]] = {}

    def look() -> None:
        # All of one moment.
        found["cluster"], found["local"] = list(source.cluster_queues()), list(source.local_queues())
        found["cohort"], found["unadmitted"] = list(source.cohorts()), list(source.unadmitted())

    registry.before_reading("queues", look)
    for whose, prefix, own, rows in (
        ("cluster", "", ("cluster_queue",), _OF_CLUSTER_QUEUES),
        ("local", "local_queue_", ("name", "namespace"), _OF_LOCAL_QUEUES),
        ("cohort", "cohort_", ("cohort",), _OF_COHORTS),
    ):
        for name, words, labels, numbers in rows:
            head = MetricHead("gauge", f"kueue_{prefix}{name}", words, (*own, *labels, ROLE))
            registry.reads(head, _reader(found, whose, numbers, role))

    registry.reads(_WAIT_SLO, _reader(found, "cluster", _wait_slo, role))
    follow_unadmitted(registry, role, lambda: found.get("unadmitted", []))


def _reader(
    found: dict[str, list[Any]], whose: str, numbers: Callable[[Any], Iterable[tuple[Values, float]]], role: str
) -> Callable[[], Iterator[tuple[Values, float]]]:
    def read() -> Iterator[tuple[Values, float]]:
        for figure in found.get(whose, ()):
            own = (figure.name, figure.namespace) if whose == "local" else (figure.name,)
            for values, number in numbers(figure):
                yield (*own, *values, role), number

    return read


def _pending(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [(("active",), figure.active), (("inadmissible",), figure.inadmissible)]


def _state(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [((state,), float(state == figure.state)) for state in _STATES]


def _is_open(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [((answer,), float(answer == str(figure.is_open))) for answer in _ANSWERS]


def _used(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [] if figure.used is None else [((), figure.used)]


def _wanted(figure: QueueFigure) -> Iterator[tuple[Values, float]]:
    return (((resource,), amount) for resource, amount in figure.wanted)


def _above(figure: QueueFigure | CohortFigure) -> list[tuple[Values, float]]:
    return [((figure.parent, figure.root), 1.0)]


def _of_subtree(at: int) -> Callable[[CohortFigure], Iterator[tuple[Values, float]]]:
    def read(figure: CohortFigure) -> Iterator[tuple[Values, float]]:
        for flavor, resource, *numbers in figure.quotas:
            yield (flavor, resource), numbers[at]

    return read


def _cohort_share(figure: CohortFigure) -> list[tuple[Values, float]]:
    return [] if figure.share is None else [((), figure.share)]


def _wait_slo(figure: QueueFigure) -> list[tuple[Values, float]]:
    return [] if figure.wait_slo_s is None else [((), figure.wait_slo_s)]


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


_WAIT_SLO = MetricHead(
    "gauge",
    "shoal_cluster_queue_wait_slo_seconds",
    "Within which time 95 of 100 workloads of the queue should get quota.",
    ("cluster_queue", ROLE),
)
_WHERE = ("flavor", "resource")
_IN_COHORT = ("cohort", *_WHERE)
_LEVELS: tuple[Level, ...] = (
    ("pending_workloads", "Workloads that wait, by whether they are to be tried again.", ("status",), _pending),
    ("reserving_active_workloads", "Workloads that hold quota.", (), lambda figure: [((), figure.reserving)]),
    ("admitted_active_workloads", "Workloads that are admitted.", (), lambda figure: [((), figure.admitted)]),
    ("finished_workloads", "Workloads that are done, and still there.", (), lambda figure: [((), figure.finished)]),
)
_TREE = ("parent_cohort", "root_cohort")
_OF_CLUSTER_QUEUES: tuple[Level, ...] = (
    *_LEVELS,
    ("cluster_queue_status", "1 for the state that the queue is in.", ("status",), _state),
    ("cluster_queue_weighted_share", "Borrowed quota by the queue's weight, 0 without borrowing.", ("cohort",), _share),
    ("cluster_queue_info", "1, with the cohorts above.", _TREE, _above),
    ("cluster_queue_resource_pending", "Resources that waiting workloads request.", ("resource",), _wanted),
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
    ("status", "1 for whether workloads may be submitted.", ("active",), _is_open),
    ("admission_fair_sharing_usage", "What it used lately, by weight.", (), _used),
    ("resource_reservation", "What is reserved.", _WHERE, _of_quotas(lambda quota: quota.reserved, has_cohort=False)),
    ("resource_usage", "What is used.", _WHERE, _of_quotas(lambda quota: quota.used, has_cohort=False)),
)
_OF_COHORTS: tuple[Level, ...] = (
    ("info", "1, with the cohorts above.", _TREE, _above),
    ("weighted_share", "Borrowed quota by the cohort's weight, 0 without borrowing.", (), _cohort_share),
    ("subtree_quota", "Quota of the cohort and all below it.", _WHERE, _of_subtree(0)),
    ("subtree_resource_reservations", "What is reserved of it.", _WHERE, _of_subtree(1)),
    ("subtree_admitted_active_workloads", "Admitted workloads below.", (), lambda figure: [((), figure.admitted)]),
)
