"""Publishes why pods wait, as the last reading of a cluster found it: metrics, and one JSON document.

The document has the rows of `shoal get pods` that wait, so that a user reads the same reasons as with `shoal why`. The
metrics count these rows by namespace, queue and reason. A failed reading keeps the former answer, and its age shows
that it is old.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Registry
from shoal.views.pod_list import PodLine

WAITING = ("waits", "queued")
_MOST_LISTED = 5_000
_BY = ("namespace", "queue", "reason")


class WaitDocument(msgspec.Struct, frozen=True, rename="camel"):
    """The content of `/waits`."""

    read_at: float = 0.0
    """When the reading ended, in seconds since the epoch."""
    waiting: int = 0
    pods: tuple[PodLine, ...] = ()
    """The first ones."""


class ObservedWaits:
    def __init__(self, registry: Registry) -> None:
        self._states: dict[str, int] = {}
        self._counts: dict[Values, int] = {}
        self._gpus: dict[Values, float] = {}
        self._took_s = 0.0
        self._document = WaitDocument()
        self._fault = "the cluster has not been read yet"
        self._failures = registry.counter("shoal_observed_failures_total", "Readings of the cluster that failed.")
        for name, words, labels, look in (
            ("shoal_observed_pods", "Pods by state.", ("state",), self._by_state),
            ("shoal_observed_waiting_pods", "Pods that wait, by reason.", _BY, self._waiting),
            ("shoal_observed_waiting_gpus", "GPUs that waiting pods ask for.", _BY, self._waiting_gpus),
            ("shoal_observed_timestamp_seconds", "When the cluster was read last.", (), self._read_at),
            ("shoal_observed_reading_seconds", "How long the last reading took.", (), self._reading),
        ):
            registry.reads(MetricHead("gauge", name, words, labels), look)

    @property
    def fault(self) -> str:
        """Why nothing is known yet; empty after the first reading."""
        return self._fault

    def publish(self, lines: Sequence[PodLine], now_s: float, took_s: float) -> None:
        states: dict[str, int] = defaultdict(int)
        counts: dict[Values, int] = defaultdict(int)
        gpus: dict[Values, float] = defaultdict(float)
        waiting: list[PodLine] = []
        for line in lines:
            states[line.state] += 1
            if line.state in WAITING:
                values = (line.pod.partition("/")[0], line.queue, line.code or "Unknown")
                counts[values] += 1
                gpus[values] += line.gpus
                waiting.append(line)
        self._states, self._counts, self._gpus = states, counts, gpus
        self._took_s = took_s
        self._document = WaitDocument(now_s, len(waiting), tuple(waiting[:_MOST_LISTED]))
        self._fault = ""

    def failed(self, words: str) -> None:
        self._failures.of().inc()
        if self._fault:
            self._fault = words

    def document(self) -> bytes:
        return msgspec.json.encode(self._document)

    def _by_state(self) -> Iterator[tuple[Values, float]]:
        return (((state,), float(count)) for state, count in self._states.items())

    def _waiting(self) -> Iterator[tuple[Values, float]]:
        return ((values, float(count)) for values, count in self._counts.items())

    def _waiting_gpus(self) -> Iterator[tuple[Values, float]]:
        return iter(self._gpus.items())

    def _read_at(self) -> Iterator[tuple[Values, float]]:
        yield (), self._document.read_at

    def _reading(self) -> Iterator[tuple[Values, float]]:
        yield (), self._took_s
