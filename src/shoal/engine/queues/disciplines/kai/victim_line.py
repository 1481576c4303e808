"""Orders the work that may have to yield to one claimant: the reverse of the order in which jobs are served.

The line of a queue is sorted once per step of a cycle. What a claimant looks at is worked out from there, one step of
one job after the other, with what was chosen so far taken off the queues.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush

from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob, JobOrderKey, sum_of
from shoal.engine.queues.disciplines.kai.fair_queues import NOTHING, Amounts3, QueueNode, plus
from shoal.engine.queues.disciplines.kai.queue_order import QueueKey, queue_key


class MayYield(IntEnum):
    """What of a job may yield to a claimant."""

    NOTHING = 0
    SURPLUS = 1
    """Only what it has above its minimum."""
    ALL = 2


MayYieldOf = Callable[[FairJob], MayYield]


@dataclass(frozen=True, slots=True, eq=False)
class VictimStep:
    """Pods of one job that yield together."""

    job: FairJob
    pods: tuple[str, ...]
    amounts: Amounts3
    rows: tuple[int, ...]
    """Where they are, each node once."""


class VictimLines:
    """All work that may have to yield in one step of a cycle."""

    def __init__(self, cycle: FairshareCycle, may_yield: Callable[[FairJob], bool]) -> None:
        self._cycle = cycle
        self.lines: dict[QueueNode, list[tuple[JobOrderKey, FairJob]]] = {}
        for job in cycle.jobs.values():
            if job.is_preemptible and may_yield(job) and (pods := job.yields()):
                self.lines.setdefault(job.leaf, []).append((_key(cycle, job, pods), job))
        for line in self.lines.values():
            line.sort(key=_first)
        self._key_of = {job: key for line in self.lines.values() for key, job in line}
        self._keys: dict[QueueNode, tuple[int, QueueKey]] = {}

    def of(
        self,
        leaves: Callable[[QueueNode], bool],
        may_yield: MayYieldOf,
        chosen: list[VictimStep],
        *,
        lasts: bool = False,
    ) -> VictimSteps:
        """What yields to one claimant, beside those chosen already; `lasts`: also once the lines have changed."""
        lines = {leaf: [*line] if lasts else line for leaf, line in self.lines.items() if line and leaves(leaf)}
        return VictimSteps(self._cycle, lines, may_yield, chosen, self._base_key)

    def spent(self, job: FairJob) -> None:
        """Pods of a job have yielded."""
        if job not in self._key_of:
            return
        line = self.lines[job.leaf]
        del line[bisect_left(line, self._key_of.pop(job), key=_first)]
        if pods := job.yields():
            key = self._key_of[job] = _key(self._cycle, job, pods)
            insort(line, (key, job), key=_first)

    def _base_key(self, node: QueueNode) -> QueueKey:
        version = self._cycle.versions.get(node, 0)
        known = self._keys.get(node)
        if known is None or known[0] != version:
            known = self._keys[node] = version, queue_key(node)
        return known[1]


class VictimSteps:
    """The steps in which work yields to one claimant, the first of them first."""

    def __init__(
        self,
        cycle: FairshareCycle,
        lines: dict[QueueNode, list[tuple[JobOrderKey, FairJob]]],
        may_yield: MayYieldOf,
        chosen: list[VictimStep],
        base_key: Callable[[QueueNode], QueueKey],
    ) -> None:
        self._cycle = cycle
        self._may_yield = may_yield
        self._base_key = base_key
        self._taken: dict[QueueNode, Amounts3] = {}
        self._gone: dict[FairJob, set[str]] = {}
        self._keys: dict[QueueNode, QueueKey] = {}
        self._walks = {leaf: iter(line) for leaf, line in lines.items()}
        self._again: dict[QueueNode, list[tuple[JobOrderKey, FairJob]]] = {}
        self._heads: dict[QueueNode, tuple[JobOrderKey, FairJob]] = {}
        self._children: dict[QueueNode | None, list[QueueNode]] = {}
        for step in chosen:
            self._take(step)
        for leaf in self._walks:
            self._advance(leaf)
        for leaf in sorted(self._heads, key=lambda node: node.age):
            for node in leaf.path:
                siblings = self._children.setdefault(node.parent, [])
                if node not in siblings:
                    siblings.append(node)

    def __iter__(self) -> Iterator[VictimStep]:
        while (leaf := self._last_leaf()) is not None:
            _, job = self._heads.pop(leaf)
            step = self._step(job)
            if step.pods:
                self._take(step)
                gone = self._gone[job]
                if pods := self._yields(job, gone):
                    heappush(self._again.setdefault(leaf, []), (_key(self._cycle, job, pods, len(gone)), job))
            self._advance(leaf)
            if leaf not in self._heads:
                self._drop(leaf)
            if step.pods:
                yield step

    def _yields(self, job: FairJob, gone: set[str]) -> list[str]:
        """What a job gives up next to this claimant."""
        may_yield = self._may_yield(job)
        if may_yield is MayYield.NOTHING:
            return []
        pods = job.yields(gone)
        is_whole = len(pods) == len(job.active) - len(gone)
        return [] if is_whole and may_yield is MayYield.SURPLUS else pods

    def _step(self, job: FairJob) -> VictimStep:
        pods = job.yields(self._gone.get(job, set()))
        held = [self._cycle.cluster.pods[pod] for pod in pods]
        amounts = sum_of(self._cycle.amounts.of(allocation.charge) for allocation in held)
        return VictimStep(job, tuple(pods), amounts, tuple(dict.fromkeys(allocation.row for allocation in held)))

    def _take(self, step: VictimStep) -> None:
        self._gone.setdefault(step.job, set()).update(step.pods)
        for node in step.job.leaf.path:
            self._taken[node] = plus(self._taken.get(node, NOTHING), step.amounts)
            self._keys.pop(node, None)

    def _advance(self, leaf: QueueNode) -> None:
        """The next job of a queue: from its line, or one that yields a second time."""
        if leaf in self._heads:
            return
        again = self._again.get(leaf, [])
        for key, job in self._walks[leaf]:
            gone = self._gone.get(job, set())
            if pods := self._yields(job, gone):
                heappush(again, (_key(self._cycle, job, pods, len(gone)) if gone else key, job))
                break
        if again:
            self._again[leaf] = again
            self._heads[leaf] = heappop(again)

    def _last_leaf(self) -> QueueNode | None:
        """The queue that comes last in the order of queues."""
        node: QueueNode | None = None
        while siblings := self._children.get(node):
            node = siblings[0] if len(siblings) == 1 else max(siblings, key=self._key)
        return node

    def _key(self, node: QueueNode) -> QueueKey:
        known = self._keys.get(node)
        if known is None:
            taken = self._taken.get(node)
            known = self._keys[node] = self._base_key(node) if taken is None else queue_key(node, NOTHING, taken)
        return known

    def _drop(self, node: QueueNode) -> None:
        """No work is left in a queue."""
        for each in node.path:
            self._children[each.parent].remove(each)
            if self._children[each.parent]:
                return


def _key(cycle: FairshareCycle, job: FairJob, pods: list[str], gone: int = 0) -> JobOrderKey:
    return job.victim_order(pods, cycle.state.now_s, spares=len(pods) < len(job.active) - gone)


def _first(item: tuple[JobOrderKey, FairJob]) -> JobOrderKey:
    return item[0]
