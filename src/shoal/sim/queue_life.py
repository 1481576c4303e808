"""A load lived through in virtual time: work comes, the discipline decides, what is admitted runs and finishes.

Time goes in batches of 100 ms. What happened since the last batch (arrivals, ends, quota given back) is reported at
the batch's end, and the discipline decides until nothing changes any more. So an admission may come up to 100 ms
later than it could, and quota may stand idle for as long; both count against us. A workload runs its time from its
admission on. One that is preempted keeps its quota up to the next batch, then is pending with its old creation time
and starts over: its work is lost.

Guarantees: same load and seed, same story, to the last decision; batches in which nothing can happen cost nothing.

Rejected: a decision at every event. It is closer to what Kueue does, but ten ends within a millisecond make ten cycles
of which the last alone sees what is free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from msgspec import structs

from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.sim.queue_load import Arrival, QueueLoad, arrivals_of, queues_of

BATCH_MS = 100
_PREEMPTED = "Preempted"


@dataclass(slots=True)
class SimulatedWorkload:
    """One workload's life as far as it has come."""

    arrival: Arrival
    queue: str
    turn: int = 0
    """Moves with every admission and stop, so that the end of an earlier run is known to be void."""
    started_ms: int = 0
    """When it was admitted last."""
    end_ms: int = 0
    """When it had finished; 0 until then."""

    @property
    def key(self) -> str:
        return self.arrival.facts.key

    @property
    def is_done(self) -> bool:
        return self.end_ms > 0

    @property
    def wait_ms(self) -> int:
        """From creation to the admission by which it finished: what was lost to others counts as waiting."""
        return self.started_ms - self.arrival.at_ms


@dataclass(slots=True)
class Batch:
    """What came to pass by one moment, and what was decided then."""

    now_ms: int
    arrived: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    """Preempted at the batch before, and out of the way now."""
    cycles: list[Decisions] = field(default_factory=list)


class QueueLife:
    """One load on one set of queues."""

    def __init__(self, load: QueueLoad, seed: int = 0, *, out_of_step: bool = False) -> None:
        self.load = load
        self.queues = queues_of(load)
        self.kueue = Kueue(self.queues)
        self.now_ms = 0
        self.jobs: dict[str, SimulatedWorkload] = {}
        self.used_milli_ms: dict[str, int] = defaultdict(int)
        """Cluster queue -> cpu times how long it was held by work that ran."""
        self._coming = arrivals_of(load, seed, out_of_step=out_of_step)[::-1]
        """Last one first."""
        self._ends: list[tuple[int, str, int]] = []
        """(moment, workload, its turn)."""
        self._stopping: list[str] = []
        """Preempted at this batch; gone at the next."""

    def each(self) -> Iterator[Batch]:
        """All batches in which something happens, until all work has finished."""
        while (next_ms := self._next_ms()) is not None:
            yield self.batch(next_ms)

    def run(self) -> list[Batch]:
        return list(self.each())

    def batch(self, now_ms: int) -> Batch:
        """Tell what happened up to now, let it be decided, and obey."""
        self.now_ms = now_ms
        batch = Batch(now_ms)
        self._stop(batch)
        self._finish(batch)
        self._arrive(batch)
        batch.cycles = self.kueue.run(now_ms / 1000)
        for decisions in batch.cycles:
            self._obey(decisions)
        return batch

    # What happened

    def _stop(self, batch: Batch) -> None:
        batch.stopped, self._stopping = self._stopping, []
        for key in batch.stopped:
            job = self.jobs[key]
            self._used(job, batch.now_ms)
            job.turn += 1
            self.kueue.put_workload(self._again(job, batch.now_ms), batch.now_ms / 1000)

    def _finish(self, batch: Batch) -> None:
        ends = self._ends
        while ends and ends[0][0] <= batch.now_ms:
            end_ms, key, turn = heappop(ends)
            job = self.jobs[key]
            if job.turn != turn:
                continue
            job.end_ms = end_ms
            self._used(job, end_ms)
            batch.finished.append(key)
            self.kueue.drop_workload(key, batch.now_ms / 1000, finished=True)

    def _arrive(self, batch: Batch) -> None:
        coming, put = self._coming, self.kueue.put_workload
        while coming and coming[-1].at_ms <= batch.now_ms:
            arrival = coming.pop()
            facts = arrival.facts
            self.jobs[facts.key] = SimulatedWorkload(arrival, facts.queue.partition("/")[2])
            batch.arrived.append(facts.key)
            put(facts, batch.now_ms / 1000)

    # What is decided

    def _obey(self, decisions: Decisions) -> None:
        for admitted in decisions.admitted:
            job = self.jobs[admitted.workload]
            job.turn += 1
            job.started_ms = self.now_ms
            heappush(self._ends, (self.now_ms + job.arrival.work.runtime_ms, job.key, job.turn))
        for preempted in decisions.preempted:
            self._stopping.append(preempted.workload)

    def _again(self, job: SimulatedWorkload, now_ms: int) -> WorkloadFacts:
        return structs.replace(job.arrival.facts, evicted_s=now_ms / 1000, evicted_why=_PREEMPTED)

    def _used(self, job: SimulatedWorkload, until_ms: int) -> None:
        work = job.arrival.work
        ran_ms = min(until_ms - job.started_ms, work.runtime_ms)
        self.used_milli_ms[job.queue] += work.cpu_milli * work.pods * ran_ms

    def _next_ms(self) -> int | None:
        """The end of the next batch in which something happens."""
        if self._stopping:
            return self.now_ms + BATCH_MS
        moments = [self._coming[-1].at_ms] if self._coming else []
        if self._ends:
            moments.append(self._ends[0][0])
        return -(-min(moments) // BATCH_MS) * BATCH_MS if moments else None
