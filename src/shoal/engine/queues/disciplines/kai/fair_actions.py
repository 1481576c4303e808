"""The actions of the fair-share discipline, as steps of a scheduling cycle.

    allocate           the next job of all queues takes a step where there is room, or is promised room that departs
    consolidation      work moves so that a job fits that all nodes together have room for
    reclaim            work of queues above their share yields to a job of a queue that stays within its own
    preempt            work of lower priority yields to a job of the same queue
    stalegangeviction  what is left of a gang that runs below its minimum for too long is stopped

Each of the three in the middle gives a job one step per cycle; allocate puts a job back in line after each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from shoal.engine.charges import Charge
from shoal.engine.plan import Evict, Move
from shoal.engine.preemption.after_terminations import AfterTerminations
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_jobs import BELOW_MINIMUM, FairJob
from shoal.engine.queues.disciplines.kai.fair_queues import NOTHING, Amounts3, QueueNode, meeting_point, plus
from shoal.engine.queues.disciplines.kai.min_runtime import preempt_min_runtime_s, reclaim_min_runtime_s
from shoal.engine.queues.disciplines.kai.queue_order import JobsByQueue, QueueKey, queue_key
from shoal.engine.queues.disciplines.kai.reclaim_rules import branches_that_may_yield, is_fair, may_reclaim
from shoal.engine.queues.disciplines.kai.serving_order import ServingOrder
from shoal.engine.queues.disciplines.kai.victim_line import MayYield, VictimLines, VictimStep
from shoal.engine.queues.disciplines.kai.victim_search import Solution, VictimRules, VictimSearch
from shoal.engine.reasons import Code
from shoal.engine.steps.departures import Departures

ALLOCATE, CONSOLIDATION, RECLAIM, PREEMPT, STALE = (
    "allocate",
    "consolidation",
    "reclaim",
    "preempt",
    "stalegangeviction",
)


def _key(node: QueueNode, job: FairJob) -> QueueKey:
    return queue_key(node, job.step_amounts)


def _line(cycle: FairshareCycle, action: str) -> JobsByQueue[FairJob]:
    waiting = [job for job in cycle.jobs.values() if job.step]
    return JobsByQueue(waiting, FairJob.order, _key, cycle.settings.depths.get(action, 0))


def allocate(cycle: FairshareCycle) -> None:
    """The jobs that were promised a place come first: others have left theirs for them."""
    departures = Departures(cycle.cluster)
    renewed = cycle.state.renewed
    promised = [job for job in cycle.jobs.values() if renewed and not renewed.isdisjoint(job.step)]
    line = JobsByQueue(promised, FairJob.order, _key)
    while (job := line.pop()) is not None:
        if _takes_step(cycle, job, set(), departures) and not renewed.isdisjoint(job.step):
            line.push(job)
        line.changed(job.leaf)
    # A cycle that its limit has cut is continued by the next one where it ended.
    left, cycle.unfinished = cycle.unfinished, None
    line, stuck = left or (_line(cycle, ALLOCATE), set())
    while not cycle.state.is_full() and (job := line.pop()) is not None:
        if _takes_step(cycle, job, stuck, departures) and job.step:
            line.push(job)
        line.changed(job.leaf)
    if cycle.state.is_cut:
        cycle.unfinished = line, stuck


def _takes_step(cycle: FairshareCycle, job: FairJob, stuck: set[Charge], departures: Departures) -> bool:
    cycle.counts.tried[ALLOCATE] += 1
    is_served = _finds_room(cycle, job, stuck, departures)
    cycle.counts.served[ALLOCATE] += is_served
    return is_served


def _finds_room(cycle: FairshareCycle, job: FairJob, stuck: set[Charge], departures: Departures) -> bool:
    state = cycle.state
    if (over := cycle.over(job, job.step_amounts)) is not None:
        cycle.note(job, over[0])
        return False
    if cycle.claim_of_other_queue(job) is not None:
        cycle.note(job, Code.CLAIM_UNUSABLE)
        return False
    pending = cycle.cluster.pending
    charges = {pending[pod].charge for pod in job.step}
    if not stuck.isdisjoint(charges):
        cycle.note(job, Code.GANG)
        return False
    mark = state.ledger.mark()
    # Nothing beyond what it needs runs before that does.
    is_held = bool(cycle.cluster.nominated) and any(pod in cycle.cluster.nominated for pod in job.active)
    if not is_held and cycle.place(job):
        state.place(state.ledger.placed_since(mark))
        return True
    if cycle.cluster.terminating and _is_promised(cycle, job, departures):
        return True
    cycle.note(job, Code.GANG)
    if len(job.step) == 1 and job.is_simple:
        stuck.update(
            charge for charge in charges if not charge.ask.near.may_wait_for_others() and not charge.ask.claims
        )
    return False


def _is_promised(cycle: FairshareCycle, job: FairJob, departures: Departures) -> bool:
    """Nominate all pods of the step for room that is being left."""
    step, amounts = job.step, job.step_amounts
    pending = cycle.cluster.pending
    if len(step) == 1:
        rows = departures.hopeful(pending[step[0]].charge)
        leave = departures.on(rows) if job.is_simple else departures.all_pods()
        if not leave:
            return False
    else:
        leave = departures.all_pods()
    if not cycle.state.nomination(partial(cycle.places, job, step), leave):
        return False
    cycle.charge(job, amounts)
    return True


class _VictimAction(ABC):
    """One run of an action that makes room."""

    def __init__(self, cycle: FairshareCycle, action: str) -> None:
        self.cycle = cycle
        self._action = action
        self._ahead: AfterTerminations | None = None
        self._search: VictimSearch | None = None
        self._order: ServingOrder | None = None
        self._failed: dict[tuple[object, ...], int] = {}
        """Kind of job -> the fewest pods with which one of it failed."""

    def run(self) -> None:
        line = _line(self.cycle, self._action)
        waiting = [job for job in self.cycle.jobs.values() if job.step]
        while (job := line.pop()) is not None:
            is_hopeless = self.cycle.is_beyond_quota(job) or self.cycle.claim_of_other_queue(job) is not None
            # What has yielded in this step may have left too few pods of a job.
            is_tried = bool(job.step) and self.may_ask(job) and not is_hopeless and not self._is_like_failed(job)
            if is_tried and not self._makes_room(job, waiting):
                self._note_failed(job)
            line.changed(job.leaf)
        if self._ahead is not None:
            self._ahead.close()
            self.cycle.view_changed()

    # -- what an action decides --------------------------------------------------------------------------------------

    @abstractmethod
    def may_ask(self, job: FairJob) -> bool:
        """Whether work may have to leave its place for the job at all."""

    @abstractmethod
    def rules(self) -> VictimRules:
        """Whose work may leave its place, and which solutions are accepted."""

    def may_yield(self, _job: FairJob) -> bool:
        """Whether a job that is preemptible may have to leave its place for any claimant."""
        return True

    # -- inside ------------------------------------------------------------------------------------------------------

    def _makes_room(self, job: FairJob, waiting: list[FairJob]) -> bool:
        cycle = self.cycle
        if self._ahead is None:
            self._ahead = AfterTerminations(cycle.state)
            cycle.view_changed()
            lines = VictimLines(cycle, self.may_yield)
            self._search = VictimSearch(cycle, lines, self.rules(), self._ahead.planned)
            self._order = ServingOrder(waiting)
        ahead, search, order = self._ahead, self._search, self._order
        assert search is not None and order is not None  # noqa: S101, PT018 - set with ahead
        cycle.counts.tried[self._action] += 1
        found = search.find(job, order.before)
        if found is None:
            return False
        if not found.stops and not found.moved and not ahead.departs:
            # There is room now: that is for allocate to give.
            return False
        self._carry_out(job, found, ahead)
        search.spent([*found.stopped, *found.movers])
        return True

    def _carry_out(self, job: FairJob, found: Solution, ahead: AfterTerminations) -> None:
        cycle = self.cycle
        names = cycle.cluster.names
        touched: dict[FairJob, None] = {}
        moves = []
        for step in [*found.stopped, *found.movers]:
            touched[step.job] = None
            stops = [pod for pod in step.pods if pod in found.stops]
            if stops:
                cycle.take_off(step.job, stops, returns=False)
                for pod in stops:
                    ahead.evict(pod, job.name)
            moved = [pod for pod in step.pods if pod in found.moved]
            cycle.counts.evicted[(step.job.name, self._action)] += len(stops) + len(moved)
            if moved:
                before = cycle.take_off(step.job, moved, returns=True)
                cycle.put(step.job, [found.moved[pod] for pod in moved])
                step.job.settled = step.job.settled.union(moved)
                for pod in moved:
                    _, row, grant = found.moved[pod]
                    moves.append(Move(pod, names[before[pod].row], names[row], grant, job.name))
        cycle.put(job, found.placed)
        cycle.counts.served[self._action] += 1
        ahead.move(moves, found.placed)
        cycle.touched |= {job, *touched}

    def _kind(self, job: FairJob) -> tuple[object, ...]:
        pending = self.cycle.cluster.pending
        charges = sorted({id(pending[pod].charge) for pod in job.step})
        alike = job.name if not job.is_simple or len(charges) > 1 else ""
        return job.leaf, tuple(charges), job.priority, job.is_preemptible, job.phase, alike

    def _is_like_failed(self, job: FairJob) -> bool:
        return self._failed.get(self._kind(job), len(job.step) + 1) <= len(job.step)

    def _note_failed(self, job: FairJob) -> None:
        kind = self._kind(job)
        self._failed[kind] = min(self._failed.get(kind, len(job.step)), len(job.step))


class _Consolidation(_VictimAction):
    def may_ask(self, job: FairJob) -> bool:
        cycle = self.cycle
        if not job.is_preemptible or cycle.over(job, job.step_amounts) is not None:
            return False
        return cycle.has_free_gpus(job)

    def may_yield(self, job: FairJob) -> bool:
        pods = [self.cycle.cluster.pods[pod] for pod in job.active]
        is_bound = all(pod.is_bound for pod in pods)
        self.cycle.is_final &= is_bound
        return is_bound and all(pod.who.returns for pod in pods)

    def rules(self) -> VictimRules:
        return VictimRules(
            lambda _claimant, _job: MayYield.ALL,
            lambda _claimant, _leaf: True,
            lambda _claimant, found: not found.stops,
            lambda _claimant, _leaf: False,
            max(0, self.cycle.settings.most_movers),
        )


class _Reclaim(_VictimAction):
    def __init__(self, cycle: FairshareCycle, action: str) -> None:
        super().__init__(cycle, action)
        self._branches: tuple[FairJob | None, set[QueueNode]] = (None, set())
        """The claimant of now, and the queues below which work may be stopped for it."""

    def _may_stop(self, claimant: FairJob, leaf: QueueNode) -> bool:
        if self._branches[0] is not claimant:
            self._branches = claimant, branches_that_may_yield(self.cycle, claimant)
        return meeting_point(claimant.leaf, leaf)[1] in self._branches[1]

    def may_ask(self, job: FairJob) -> bool:
        return may_reclaim(job)

    def rules(self) -> VictimRules:
        return VictimRules(
            self._may_yield, lambda claimant, leaf: leaf is not claimant.leaf, self._accepts, self._may_stop
        )

    def _may_yield(self, claimant: FairJob, job: FairJob) -> MayYield:
        settings = self.cycle.settings
        least_s = reclaim_min_runtime_s(
            claimant.leaf,
            job.leaf,
            settings.reclaim_min_runtime_s,
            of_victim=settings.reclaim_min_runtime_of_victim,
        )
        return _may_stop(self.cycle, job, least_s)

    def _accepts(self, claimant: FairJob, found: Solution) -> bool:
        cycle = self.cycle
        step = claimant.sum_of_waiting(pod for pod, _, _ in found.placed)
        return is_fair(cycle, claimant, step, [(each, _stopped(cycle, each, found)) for each in found.stopped])


class _Preempt(_VictimAction):
    def __init__(self, cycle: FairshareCycle, action: str) -> None:
        super().__init__(cycle, action)
        self._lowest: dict[QueueNode, int] = {}
        """The lowest priority of what runs in each queue and may yield."""
        for job in cycle.jobs.values():
            if job.is_preemptible and job.active:
                self._lowest[job.leaf] = min(self._lowest.get(job.leaf, job.priority), job.priority)

    def may_ask(self, job: FairJob) -> bool:
        lowest = self._lowest.get(job.leaf)
        return lowest is not None and lowest < job.priority and job.preempts

    def rules(self) -> VictimRules:
        return VictimRules(
            self._may_yield,
            lambda claimant, leaf: leaf is claimant.leaf,
            lambda _claimant, _found: True,
            lambda _claimant, _leaf: True,
        )

    def _may_yield(self, claimant: FairJob, job: FairJob) -> MayYield:
        if job.priority >= claimant.priority:
            return MayYield.NOTHING
        return _may_stop(self.cycle, job, preempt_min_runtime_s(job.leaf, self.cycle.settings.preempt_min_runtime_s))


def _may_stop(cycle: FairshareCycle, job: FairJob, least_s: float) -> MayYield:
    """A job that has not run for long enough gives up only what it has above its minimum."""
    started_s = job.started_s(cycle.state.now_s)
    if not least_s or not cycle.settings.has_min_runtimes or cycle.state.now_s - started_s >= least_s:
        return MayYield.ALL
    cycle.due_s = min(cycle.due_s, started_s + least_s)
    return MayYield.SURPLUS


def _stopped(cycle: FairshareCycle, step: VictimStep, found: Solution) -> Amounts3:
    total: Amounts3 = NOTHING
    for pod in step.pods:
        if pod in found.stops:
            total = plus(total, cycle.amounts.of(cycle.cluster.pods[pod].charge))
    return total


def evict_stale(cycle: FairshareCycle, since_s: dict[str, float], seen: set[str]) -> None:
    """Stop all pods of gangs that have run below their minima for longer than the grace.

    `since_s`: gang -> the moment when that began. It is kept up to date, for the next cycle, as are the gangs `seen`:
    what the object of a gang records counts until the gang was looked at."""
    state, grace_s = cycle.state, cycle.settings.stale_grace_s
    stale: dict[str, float] = {}
    for job in cycle.jobs.values():
        facts = job.facts
        if facts.succeeded or not (active := job.active) or job.phase != BELOW_MINIMUM:
            continue
        recorded_s = None if job.name in seen else facts.stale_since_s
        began_s = since_s.get(job.name, state.now_s if recorded_s is None else recorded_s)
        stale[job.name] = began_s
        if grace_s < 0:
            continue
        if state.now_s - began_s < grace_s:
            cycle.due_s = min(cycle.due_s, began_s + grace_s)
            continue
        for pod in active:
            if cycle.cluster.pods[pod].is_bound:
                state.ledger.mark_terminating(pod)
                state.intentions.append(Evict(pod, "", Code.STALE))
                cycle.counts.evicted[(job.name, STALE)] += 1
            else:
                cycle.is_final = False
    since_s.clear()
    since_s.update(stale)
    seen.clear()
    seen.update(cycle.jobs)


ACTIONS: dict[str, Callable[[FairshareCycle], None]] = {
    ALLOCATE: allocate,
    CONSOLIDATION: lambda cycle: _Consolidation(cycle, CONSOLIDATION).run(),
    RECLAIM: lambda cycle: _Reclaim(cycle, RECLAIM).run(),
    PREEMPT: lambda cycle: _Preempt(cycle, PREEMPT).run(),
}
