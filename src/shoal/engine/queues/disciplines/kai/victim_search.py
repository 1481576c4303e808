"""Finds the work that yields to one claimant: the shortest piece of the victims' line that lets it in.

Pod by pod of the claimant's next step. The line is followed until, on a node of the step that was looked at last, the
pod fits once all those looked at so far have left the node. The trial takes them off, places the claimant, and then
tries to place again what was taken off, in the order of queues: what gets its old place back was not needed, what
fits elsewhere is moved, and only the rest is stopped.

Rejected: all sets of victims of a node. KAI documents the order of the line: queues over their share yield first, and
their newest work before the older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from shoal.engine.charges import Charge
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.pods import PodAllocation
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob
from shoal.engine.queues.disciplines.kai.fair_queues import QueueNode
from shoal.engine.queues.disciplines.kai.kept_devices import keep_devices
from shoal.engine.queues.disciplines.kai.queue_order import JobsByQueue, queue_key
from shoal.engine.queues.disciplines.kai.victim_line import MayYield, VictimLines, VictimStep
from shoal.engine.queues.disciplines.kai.victim_walk import VictimWalk
from shoal.engine.queues.disciplines.lost_work import lost_work

_MOST_FROM_SCRATCH = 6
"""A claimant of more pods is placed pod by pod, and only the outcome as a whole."""

_LONG_WALK = 256
_MOST_TRIALS = 512
"""Nodes that are tried for one pod."""
_MOST_MOVE_TRIALS = 64
"""Nodes that are tried for one pod although some of the work on them could only move elsewhere."""

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
    may_stop: Callable[[FairJob, QueueNode], bool]
    """Whether work of a queue may be stopped for a claimant at all; otherwise it may only move."""
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
        self._long_walks: dict[tuple[QueueNode, int], VictimWalk] = {}
        """Kind of claimant -> what yields to it, where that was long to find out."""

    def find(self, claimant: FairJob, ahead: Callable[[FairJob, set[FairJob]], Iterable[FairJob]]) -> Solution | None:
        """`ahead`: jobs that would be served before the claimant, if those of the second argument waited as well."""
        pods = claimant.step
        if len(pods) > _MOST_FROM_SCRATCH and claimant.is_simple:
            found = self._grown(claimant, pods)
        else:
            found = self._from_scratch(claimant, pods)
        return found if found is not None and self._is_lasting(claimant, found, ahead) else None

    # -- the pods of the claimant so far, one more each time ---------------------------------------------------------

    def _from_scratch(self, claimant: FairJob, pods: list[str]) -> Solution | None:
        """One pod more each time; all of them are placed again, and all that has to yield so far is tried again."""
        found = Solution()
        for count in range(1, len(pods) + 1):
            more = self._solve(claimant, pods[:count], found)
            if more is None:
                return None
            found = more
        return found

    def _solve(self, claimant: FairJob, pods: list[str], before: Solution) -> Solution | None:
        recorded = [*before.stopped, *before.movers]
        found = self._try(claimant, pods, recorded)
        if found is not None:
            return found
        for victims in self._chances(claimant, pods, self._walk(claimant, recorded)):
            found = self._try(claimant, pods, [*recorded, *victims])
            if found is not None:
                return found
        return None

    def _grown(self, claimant: FairJob, pods: list[str]) -> Solution | None:
        """Pods that have places keep them while the next one is looked for; only the outcome is tried as a whole."""
        cycle = self._cycle
        mark = cycle.mark()
        chosen: list[VictimStep] = []
        kind = claimant.leaf, claimant.priority
        walk = self._long_walks.get(kind)
        if walk is None:
            walk = self._walk(claimant, chosen, lasts=True)
        is_done = all(self._next_pod(claimant, pod, walk, chosen) for pod in pods)
        cycle.rollback(mark)
        walk.revive(chosen)
        if len(walk) >= _LONG_WALK:
            self._long_walks[kind] = walk
        return self._try(claimant, pods, chosen) if is_done else None

    def spent(self, steps: list[VictimStep]) -> None:
        """These have yielded to a claimant."""
        for step in steps:
            self._lines.spent(step.job)
        if any(step.job.yields() for step in steps):
            # What the rest of a job gives up is another step now.
            self._long_walks.clear()
        for walk in self._long_walks.values():
            walk.left(step.job for step in steps)

    def _next_pod(self, claimant: FairJob, pod: str, walk: VictimWalk, chosen: list[VictimStep]) -> bool:
        """Place one more pod, on the ledger; those that leave their places for it are added to the chosen."""
        cycle = self._cycle
        if self._may_place(claimant, [pod]) and cycle.place(claimant, [pod]):
            return True
        for victims in self._chances(claimant, [pod], walk):
            mark = cycle.mark()
            for step in victims:
                cycle.take_off(step.job, step.pods, returns=True)
            if self._may_place(claimant, [pod]) and cycle.place(claimant, [pod]):
                walk.spent(victims)
                chosen += victims
                return True
            cycle.rollback(mark)
        return False

    def _chances(self, claimant: FairJob, pods: list[str], walk: VictimWalk) -> Iterator[list[VictimStep]]:
        """Those that would have to leave a node for these pods, as far as that is worth a trial."""
        cycle, rules = self._cycle, self._rules
        charges = {cycle.cluster.pending[pod].charge for pod in pods}
        lacks_room = self._lacks_room(claimant, charges)
        may_stop: dict[QueueNode, bool] = {}
        short = cycle.shortage(claimant.step) if lacks_room else None
        if short is not None and not any(self._lines.lines[leaf] for leaf in self._stoppable(claimant, may_stop)):
            # What may only move leaves its room nowhere.
            return
        moves = tried = 0
        for victims in walk.chances(charges if lacks_room else None):
            gains = [step for step in victims if _known(may_stop, rules, claimant, step.job.leaf)]
            if len(gains) < len(victims):
                moves += 1
                if moves > _MOST_MOVE_TRIALS or (
                    short is not None and not cycle.covers(short, [step.amounts for step in gains])
                ):
                    continue
            yield victims
            tried += 1
            if tried == _MOST_TRIALS:
                return

    def _stoppable(self, claimant: FairJob, may_stop: dict[QueueNode, bool]) -> Iterator[QueueNode]:
        for leaf in self._lines.lines:
            if self._rules.leaves(claimant, leaf) and _known(may_stop, self._rules, claimant, leaf):
                yield leaf

    def _walk(self, claimant: FairJob, recorded: list[VictimStep], *, lasts: bool = False) -> VictimWalk:
        """`lasts`: it may be followed further after work has yielded to this claimant."""
        rules = self._rules
        steps = self._lines.of(
            lambda leaf: rules.leaves(claimant, leaf),
            lambda job: MayYield.NOTHING if job is claimant else rules.may_yield(claimant, job),
            recorded,
            lasts=lasts,
        )
        return VictimWalk(self._cycle, _of_jobs(steps, rules.most_jobs) if rules.most_jobs else steps)

    def _may_place(self, claimant: FairJob, pods: list[str]) -> bool:
        return self._cycle.over(claimant, claimant.sum_of_waiting(pods)) is None

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
        if not self._may_place(claimant, pods) or not cycle.place(claimant, pods):
            cycle.rollback(mark)
            return None
        held = cycle.cluster.pods
        self._restore(claimant, before)
        keep_devices(cycle.state.ledger, cycle.cluster, pods, before.values())
        found = Solution([(pod, held[pod].row, held[pod].grant) for pod in pods])
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

    def _restore(self, claimant: FairJob, before: Mapping[FairJob, dict[str, PodAllocation]]) -> None:
        """Place again what was taken off, step by step in the order of queues. What may not be stopped for the claimant
        comes first: else it could lose its place to work that may be stopped, and the trial would be in vain."""
        may_stop: dict[QueueNode, bool] = {}
        yields = {job: _known(may_stop, self._rules, claimant, job.leaf) for job in before}
        stuck: set[Charge] = set()
        for is_last in (False, True):
            self._restore_in_order({job: pods for job, pods in before.items() if yields[job] is is_last}, stuck)

    def _restore_in_order(self, before: Mapping[FairJob, dict[str, PodAllocation]], stuck: set[Charge]) -> None:
        cycle = self._cycle
        now_s = cycle.state.now_s
        loses = {job: lost_work(pods.values(), now_s) for job, pods in before.items()}
        line = JobsByQueue(
            before, lambda job: job.order(loses[job]), lambda node, job: queue_key(node, job.step_amounts)
        )
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
        """Whether those that yielded would not be served before the claimant: else they would take the room back, and
        would have to yield again. Others do not get it, because the claimant is nominated for it."""
        cycle = self._cycle
        mark = cycle.mark()
        victims = [*found.stopped, *found.movers]
        for step in victims:
            cycle.take_off(step.job, step.pods, returns=True)
        lasts = True
        took = False
        yielded = {step.job for step in victims}
        for job in ahead(claimant, yielded):
            if job in yielded:
                took |= cycle.over(job, job.step_amounts) is None and cycle.place(job)
        if took:
            lasts = cycle.over(claimant, claimant.step_amounts) is None and cycle.place(claimant)
        cycle.rollback(mark)
        return lasts


def _known(may_stop: dict[QueueNode, bool], rules: VictimRules, claimant: FairJob, leaf: QueueNode) -> bool:
    known = may_stop.get(leaf)
    if known is None:
        known = may_stop[leaf] = rules.may_stop(claimant, leaf)
    return known


def _of_jobs(steps: Iterable[VictimStep], most: int) -> Iterator[VictimStep]:
    """The steps of the first so many jobs."""
    jobs: set[FairJob] = set()
    for step in steps:
        jobs.add(step.job)
        if len(jobs) > most:
            return
        yield step


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
