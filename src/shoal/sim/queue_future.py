"""Simulates all workloads of the queues in virtual time, until nothing more is known to happen.

Work whose duration is known ends when it is up, and frees what it held; work of which nothing is known runs on. Between
such moments the rounds run until they are quiet, without time passing: seconds between rounds would only blur the
comparison of two futures. A preempted workload starts over when it is admitted again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from shoal.engine.queues.eviction_rules import next_deadline_s
from shoal.sim.queue_rounds import QueueRecord, QueueRounds
from shoal.sim.rounds import MOST_ROUNDS, Record

MOST_MOMENTS = 20_000
ROUNDS_EACH = 20
"""So many rounds for each workload, all moments together: several times what it takes without endless preemption."""


@dataclass(slots=True)
class Stop:
    after_s: float
    beneficiary: str
    reason: str
    back_s: float | None = None
    """When it is admitted again; None where nothing that is known lets it."""


@dataclass(slots=True)
class Future:
    """Seconds count from the moment that the manifests speak of."""

    starts: dict[str, float] = field(default_factory=dict)
    """When each was admitted first; 0 for those that run already."""
    ran: set[str] = field(default_factory=set)
    """Those that ran already."""
    stops: dict[str, list[Stop]] = field(default_factory=dict)
    is_quiet: bool = True
    """False where it was cut short."""
    until_s: float = math.inf
    """What happens later is not known, where it was cut short."""


class Watch(Protocol):
    """Notes what becomes of work that is in no queue of these rounds."""

    def note(self, record: Record, after_s: float) -> None: ...


def future_of(rounds: QueueRounds, watch: Callable[[Future], Watch] | None = None) -> Future:
    """Live on until nothing more is known to happen. `watch` is called with the future before it begins."""
    return _Life(rounds, watch).future()


class _Life:
    def __init__(self, rounds: QueueRounds, watch: Callable[[Future], Watch] | None = None) -> None:
        self._rounds = rounds
        self._watch_of = watch
        self._watch: Watch | None = None
        self._begin_s = self._now_s = rounds.now_s
        self._future = Future()
        self._since_s: dict[str, float] = {}
        """When each was admitted last."""
        self._left = max(MOST_ROUNDS, ROUNDS_EACH * len(rounds.workloads))

    def future(self) -> Future:
        held = self._rounds.kueue.queues.held
        self._future.ran = {key for key, each in held.items() if each.facts.admitted and not each.evicted}
        self._future.starts = dict.fromkeys(sorted(self._future.ran), 0.0)
        self._watch = self._watch_of(self._future) if self._watch_of is not None else None
        for _ in range(MOST_MOMENTS):
            if not self._settle():
                break
            ahead_s = min(self._moments(), default=None)
            if ahead_s is None:
                return self._future
            self._now_s = max(self._now_s, ahead_s)
            self._finish()
        self._future.is_quiet = False
        self._future.until_s = self._now_s - self._begin_s
        return self._future

    def _settle(self) -> bool:
        """Rounds until one changes nothing; whether there was such a one."""
        while self._left:
            self._left -= 1
            self._rounds.now_s = self._now_s
            record = self._rounds.round()
            self._note(record)
            if self._watch is not None:
                self._watch.note(record, self._now_s - self._begin_s)
            if record.is_quiet:
                return True
        return False

    def _note(self, record: QueueRecord) -> None:
        for admitted in record.admitted:
            if not (admitted.checks_pending or admitted.again):
                self._begins(admitted.workload)
        for preempted in record.preempted:
            self._ends_early(preempted.workload, preempted.beneficiary, preempted.reason)
        for stopped in record.stopped:
            self._ends_early(stopped.workload, "", stopped.reason)

    def _begins(self, workload: str) -> None:
        after_s = self._since_s[workload] = self._now_s - self._begin_s
        self._future.starts.setdefault(workload, after_s)
        for stop in self._future.stops.get(workload, [])[-1:]:
            stop.back_s = after_s

    def _ends_early(self, workload: str, beneficiary: str, reason: str) -> None:
        """What ends in the moment in which it began has never run."""
        after_s = self._now_s - self._begin_s
        stops = self._future.stops.get(workload)
        if self._since_s.pop(workload, None) != after_s:
            self._future.stops.setdefault(workload, []).append(Stop(after_s, beneficiary, reason))
        elif stops:
            stops[-1].back_s = None
        elif workload not in self._future.ran:
            del self._future.starts[workload]

    def _moments(self) -> Iterator[float]:
        """Times of the next events that no decision causes."""
        yield from (end_s for _, end_s in self._ends())
        for moment in (self._rounds.kueue.next_s(), next_deadline_s(self._rounds.kueue.queues)):
            if moment is not None and moment > self._now_s:
                yield moment

    def _ends(self) -> Iterator[tuple[str, float]]:
        for held in self._rounds.kueue.queues.held.values():
            length_s = self._rounds.kueue.durations.expected_s(held.facts)
            if length_s is not None and held.facts.admitted and not held.evicted:
                yield held.key, held.facts.admitted_s + length_s

    def _finish(self) -> None:
        self._rounds.now_s = self._now_s
        for workload in [key for key, end_s in self._ends() if end_s <= self._now_s]:
            self._rounds.finish(workload)
