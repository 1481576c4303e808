"""Takes the time of each action of KAI's fair share, and hands on what the actions counted, after each cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from shoal.client.item import Item
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.queues.disciplines.kai.action_counts import ActionCounts
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare


class CycleObserver(Protocol):
    def observe(self, seconds: Mapping[str, float]) -> None: ...

    def count(self, counts: ActionCounts, pool: str, uid_of: Callable[[str], str]) -> None: ...

    def forget(self, namespace: str, name: str) -> None:
        """The PodGroup, or the job without one, is gone."""
        ...


class MeasuredCycles:
    def __init__(
        self,
        observer: CycleObserver,
        stopwatch: Callable[[], float],
        discipline: ShardedFairshare,
        uid_of: Callable[[str], str],
    ) -> None:
        self._observer = observer
        self._stopwatch = stopwatch
        self._discipline = discipline
        self._uid_of = uid_of
        self._seconds: dict[str, float] = {}
        self._ungrouped: set[str] = set()
        """Jobs without a PodGroup of which evictions were counted: nothing else tells when they end."""

    def steps(self) -> tuple[Step, ...]:
        self._seconds = {}
        return tuple(self._timed(name, step) for name, step in self._discipline.named_steps())

    def done(self) -> None:
        self._observer.observe(self._seconds)
        for shard, cycle in self._discipline.cycles():
            counts = cycle.counts.take()
            self._ungrouped |= {job for job, _ in counts.evicted if not self._uid_of(job)}
            self._observer.count(counts, shard.pool.value if shard.pool is not None else "", self._uid_of)
            for job in [each for each in self._ungrouped if cycle.cluster.gangs.find(each) is None]:
                self._ungrouped.remove(job)
                self._observer.forget(*job.split("/", 1))

    def group_changed(self, before: Item | None, after: Item | None) -> None:
        if before is not None and after is None:
            self._observer.forget(before.namespace, before.name)

    def _timed(self, name: str, step: Step) -> Step:
        def run(state: CycleState) -> None:
            began = self._stopwatch()
            step(state)
            # The shards have actions of the same names.
            self._seconds[name] = self._seconds.get(name, 0.0) + self._stopwatch() - began

        return run
