"""Publishes why pods and workloads wait, as the last reading of a cluster found it: metrics, and one JSON document.

The document has the rows of `shoal get pods` and `shoal get workloads` that wait, so that a user reads the same reasons
as with `shoal why`. The metrics count these rows by namespace, queue and reason. A failed reading keeps the former
answer, and its age shows that it is old.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec

from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Registry
from shoal.views.pod_list import PodLine
from shoal.views.workload_list import WorkloadLine

_WAITING = ("waits", "queued")
_UNADMITTED = ("active", "parked")
_MOST_LISTED = 5_000
_BY = ("namespace", "queue", "reason")


class ObservedObjects(msgspec.Struct, frozen=True):
    """All pods and workloads of one reading."""

    pods: tuple[PodLine, ...] = ()
    workloads: tuple[WorkloadLine, ...] = ()


class WaitDocument(msgspec.Struct, frozen=True, rename="camel"):
    """The content of `/waits`."""

    read_at: float = 0.0
    """When the reading ended, in seconds since the epoch."""
    waiting_pods: int = 0
    waiting_workloads: int = 0
    pods: tuple[PodLine, ...] = ()
    """The first ones."""
    workloads: tuple[WorkloadLine, ...] = ()
    """The first ones."""


class ObservedWaits:
    def __init__(self, registry: Registry) -> None:
        self._states: dict[str, int] = {}
        self._counts: dict[Values, int] = {}
        self._workloads: dict[Values, int] = {}
        self._gpus: dict[Values, float] = {}
        self._took_s = 0.0
        self._document = WaitDocument()
        self._fault = "the cluster has not been read yet"
        self._failures = registry.counter("shoal_observed_failures_total", "Readings of the cluster that failed.")
        for name, words, labels, look in (
            ("shoal_observed_pods", "Pods by state.", ("state",), self._by_state),
            ("shoal_observed_waiting_pods", "Pods that wait, by reason.", _BY, self._waiting),
            ("shoal_observed_waiting_gpus", "GPUs that waiting pods ask for.", _BY, self._waiting_gpus),
            ("shoal_observed_waiting_workloads", "Workloads without an admission.", _BY, self._unadmitted),
            ("shoal_observed_timestamp_seconds", "When the cluster was read last.", (), self._read_at),
            ("shoal_observed_reading_seconds", "How long the last reading took.", (), self._reading),
        ):
            registry.reads(MetricHead("gauge", name, words, labels), look)

    @property
    def fault(self) -> str:
        """Why nothing is known yet; empty after the first reading."""
        return self._fault

    def publish(self, found: ObservedObjects, now_s: float, took_s: float) -> None:
        states: dict[str, int] = defaultdict(int)
        counts: dict[Values, int] = defaultdict(int)
        gpus: dict[Values, float] = defaultdict(float)
        waiting: list[PodLine] = []
        for line in found.pods:
            states[line.state] += 1
            if line.state in _WAITING:
                values = (line.pod.partition("/")[0], line.queue, line.code or "Unknown")
                counts[values] += 1
                gpus[values] += line.gpus
                waiting.append(line)
        held = [one for one in found.workloads if one.state in _UNADMITTED]
        self._states, self._counts, self._gpus = states, counts, gpus
        self._workloads = Counter(
            (one.workload.partition("/")[0], one.queue.rpartition("/")[2], one.code or "Unknown") for one in held
        )
        self._took_s = took_s
        shown = tuple(waiting[:_MOST_LISTED]), tuple(held[:_MOST_LISTED])
        self._document = WaitDocument(now_s, len(waiting), len(held), *shown)
        self._fault = ""

    def failed(self, words: str) -> None:
        self._failures.of().inc()
        if self._fault:
            self._fault = words

    def document(self) -> bytes:
        return msgspec.json.encode(self._document)

    def totals(self) -> bytes:
        """The document without the rows, which name objects of every tenant."""
        return msgspec.json.encode(msgspec.structs.replace(self._document, pods=(), workloads=()))

    def _by_state(self) -> Iterator[tuple[Values, float]]:
        return (((state,), float(count)) for state, count in self._states.items())

    def _waiting(self) -> Iterator[tuple[Values, float]]:
        return ((values, float(count)) for values, count in self._counts.items())

    def _unadmitted(self) -> Iterator[tuple[Values, float]]:
        return ((values, float(count)) for values, count in self._workloads.items())

    def _waiting_gpus(self) -> Iterator[tuple[Values, float]]:
        return iter(self._gpus.items())

    def _read_at(self) -> Iterator[tuple[Values, float]]:
        yield (), self._document.read_at

    def _reading(self) -> Iterator[tuple[Values, float]]:
        yield (), self._took_s
