"""Finds the work that yields to one claimant: the shortest piece of the victims' line that lets it in.

Pod by pod of the claimant's next step. The line is followed until, on a node of the step that was looked at last, the
pod fits once all those looked at so far have left the node. The trial takes them off, places the claimant, and then
tries to place again whoever was taken off, in the order of queues: what gets its old place back was not needed, what
fits elsewhere is moved, and only the rest is stopped.

Rejected: all sets of victims of a node. The line is what KAI's users are told: who is over its share yields first, the
newest of it before the older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from shoal.engine.charges import Charge
from shoal.engine.device_demand import COMPUTE, DeviceGrant
from shoal.engine.facts import GPU_BEST, GPU_MILLI, GPU_WHOLE, NEVER_LACKING
from shoal.engine.pods import PodAllocation
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob
from shoal.engine.queues.disciplines.kai.fair_queues import QueueNode
from shoal.engine.queues.disciplines.kai.queue_order import JobsByQueue, queue_key
from shoal.engine.queues.disciplines.kai.victim_line import MayYield, VictimLines, VictimStep

Destination = tuple[str, int, DeviceGrant | None]


@dataclass(slots=True)
class Solution:
    """What must happen for a claimant."""

    placed: list[Destination] = field(default_factory=list)
    stopped: list[VictimStep] = field(default_factory=list)
    """Steps of which something is stopped, in the order in which they were chosen."""
    stops: set[str] = field(default_factory=set)
    """The pods of them."""
    moved: dict[str, Destination] = field(default_factory=dict)
    movers: list[VictimStep] = field(default_factory=list)
    """Steps of which everything was placed again, something of it elsewhere."""


Accepts = Callable[[FairJob, Solution], bool]


@dataclass(frozen=True, slots=True)
class VictimRules:
    """What distinguishes the actions that take work off its nodes."""

    may_yield: Callable[[FairJob, FairJob], MayYield]
    """What of a job (the second) may have to yield to a claimant (the first)."""
    leaves: Callable[[FairJob, QueueNode], bool]
    """In which queues it may be."""
    accepts: Accepts
    most_jobs: int = 0
    """Jobs that are looked at for one claimant; 0 is all of them."""


class VictimSearch:
    """The search of one step of a cycle, on the facts after all terminations."""

    def __init__(self, cycle: FairshareCycle, lines: VictimLines, rules: VictimRules, planned: set[str]) -> None:
        """`planned`: pods that were placed in this cycle and have not started."""
        self._cycle = cycle
        self._lines = lines
        self._rules = rules
        self._planned = planned

    def find(self, claimant: FairJob, ahead: Callable[[FairJob, set[FairJob]], Iterable[FairJob]]) -> Solution | None:
        """`ahead`: jobs that would be served before the claimant, if those of the second argument waited as well."""
        pods = claimant.step
        found = Solution()
        for count in range(1, len(pods) + 1):
            more = self._solve(claimant, pods[:count], found)
            if more is None:
                return None
            found = more
        return found if self._is_lasting(claimant, found, ahead) else None

    # -- the pods of the claimant so far, one more each time ---------------------------------------------------------

    def _solve(self, claimant: FairJob, pods: list[str], before: Solution) -> Solution | None:
        cycle = self._cycle
        recorded = [*before.stopped, *before.movers]
        found = self._try(claimant, pods, recorded)
        if found is not None:
            return found
        charges = {cycle.cluster.pending[pod].charge for pod in pods}
        prospects = _Prospects(cycle, charges, recorded) if self._lacks_room(claimant, charges) else None
        rules = self._rules
        looked_at: set[FairJob] = set()
        on_row: dict[int, list[VictimStep]] = {}
        steps = self._lines.of(
            lambda leaf: rules.leaves(claimant, leaf),
            lambda job: MayYield.NOTHING if job is claimant else rules.may_yield(claimant, job),
            recorded,
        )
        for step in steps:
            looked_at.add(step.job)
            if rules.most_jobs and len(looked_at) > rules.most_jobs:
                return None
            for row in step.rows:
                on_row.setdefault(row, []).append(step)
            if prospects is not None:
                prospects.leaves(step)
            for row in step.rows:
                if prospects is None or prospects.may_do(row):
                    found = self._try(claimant, pods, [*recorded, *on_row[row]])
                    if found is not None:
                        return found
        return None

    def _lacks_room(self, claimant: FairJob, charges: set[Charge]) -> bool:
        """Whether only room on nodes is missing, so that counting it tells where it is of no use to try."""
        if any(charge.ask.near.may_wait_for_others() or charge.ask.claims for charge in charges):
            return False
        return self._cycle.over(claimant, claimant.step_amounts) is None and not self._cycle.cluster.counts.active

    def _try(self, claimant: FairJob, pods: list[str], victims: list[VictimStep]) -> Solution | None:
        """What would come of taking these off; the ledger is left as it was."""
        cycle = self._cycle
        mark = cycle.mark()
        before: dict[FairJob, dict[str, PodAllocation]] = {}
        for step in victims:
            before.setdefault(step.job, {}).update(cycle.take_off(step.job, step.pods, returns=True))
        if cycle.over(claimant, claimant.sum_of_waiting(pods)) is not None or not cycle.place(claimant, pods):
            cycle.rollback(mark)
            return None
        held = cycle.cluster.pods
        found = Solution([(pod, held[pod].row, held[pod].grant) for pod in pods])
        self._restore(before)
        for step in victims:
            changed = [pod for pod in step.pods if not _stays(held.get(pod), before[step.job][pod])]
            stops = {pod for pod in changed if pod not in held or pod in self._planned}
            if stops:
                found.stopped.append(step)
                found.stops |= stops
            elif changed:
                found.movers.append(step)
            for pod in changed:
                if pod not in stops:
                    found.moved[pod] = (pod, held[pod].row, held[pod].grant)
        cycle.rollback(mark)
        return found if self._rules.accepts(claimant, found) else None

    def _restore(self, before: Mapping[FairJob, dict[str, PodAllocation]]) -> None:
        """Place again what was taken off, step by step in the order of queues."""
        cycle = self._cycle
        line = JobsByQueue(before, FairJob.order, lambda node, job: queue_key(node, job.step_amounts))
        stuck: set[Charge] = set()
        while (job := line.pop()) is not None:
            pods = _returning(job, before[job])
            is_back = pods and self._back(job, {pod: before[job][pod] for pod in pods}, stuck)
            if is_back and any(pod in cycle.cluster.pending for pod in before[job]):
                line.push(job)
            line.changed(job.leaf)

    def _back(self, job: FairJob, before: dict[str, PodAllocation], stuck: set[Charge]) -> bool:
        cycle = self._cycle
        if cycle.over(job, job.sum_of_waiting(before)) is not None:
            return False
        if cycle.place_back(job, before):
            return True
        charges = {allocation.charge for allocation in before.values()}
        if not all(allocation.who.returns for allocation in before.values()) or (job.is_simple and charges & stuck):
            return False
        if cycle.place(job, list(before)):
            return True
        if len(before) == 1 and not next(iter(charges)).ask.near.may_wait_for_others():
            stuck |= charges
        return False

    # -- whether it lasts --------------------------------------------------------------------------------------------

    def _is_lasting(
        self, claimant: FairJob, found: Solution, ahead: Callable[[FairJob, set[FairJob]], Iterable[FairJob]]
    ) -> bool:
        """Whether the claimant would get its place when the room is free, with all that is served before it by then.
        Else those that yielded would take it back, and would have to yield again."""
        cycle = self._cycle
        mark = cycle.mark()
        victims = [*found.stopped, *found.movers]
        for step in victims:
            cycle.take_off(step.job, step.pods, returns=True)
        lasts = True
        took = False
        for job in ahead(claimant, {step.job for step in victims}):
            took |= cycle.over(job, job.step_amounts) is None and cycle.place(job)
        if took:
            lasts = cycle.over(claimant, claimant.step_amounts) is None and cycle.place(claimant)
        cycle.rollback(mark)
        return lasts


class _Prospects:
    """What nodes would have free once those looked at so far have left: a node with too little is not tried."""

    def __init__(self, cycle: FairshareCycle, charges: set[Charge], recorded: Iterable[VictimStep]) -> None:
        self._cycle = cycle
        self._freed: dict[int, np.ndarray] = {}
        self._unclear: set[int] = set(cycle.cluster.devices.odd)
        self._needs = [_need(charge, cycle.cluster.width) for charge in charges]
        for step in recorded:
            self.leaves(step)

    def leaves(self, step: VictimStep) -> None:
        cluster = self._cycle.cluster
        for pod in step.pods:
            allocation = cluster.pods[pod]
            row, taken, grant = allocation.row, allocation.charge.taken, allocation.grant
            self._freed[row] = self._freed[row] + taken if row in self._freed else taken
            if grant is not None and any(plane != COMPUTE for _, plane, _ in grant.parts):
                self._unclear.add(row)

    def may_do(self, row: int) -> bool:
        if row in self._unclear:
            return True
        free = self._cycle.cluster.free[row] + self._freed[row]
        return any(bool((free >= need).all()) for need in self._needs)


def _need(charge: Charge, width: int) -> np.ndarray:
    need = np.full(width, NEVER_LACKING, np.int64)
    need[: len(charge.need)] = charge.need
    # How much of a device is free in one piece does not add up; the sum over a node's devices does.
    need[[GPU_WHOLE, GPU_BEST]] = NEVER_LACKING
    need[GPU_MILLI] = charge.taken[GPU_MILLI] or NEVER_LACKING
    return need


def _stays(now: PodAllocation | None, before: PodAllocation) -> bool:
    return now is not None and (now.row, now.grant) == (before.row, before.grant)


def _returning(job: FairJob, before: Mapping[str, PodAllocation]) -> list[str]:
    """The next step of a job that was taken off, of the pods that it had."""
    pending = job.cluster.pending
    left = [pod for pod in before if pod in pending]
    step = job.step
    if not step or not left:
        return []
    if job.is_simple:
        left.sort(key=lambda pod: (pending[pod].who.order, len(pod), pod))
        return left[: len(step)] if len(left) >= len(step) else []
    return step if set(step) <= set(left) else []
