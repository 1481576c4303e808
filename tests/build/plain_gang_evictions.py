"""The actions `gangpreempt` and `gangreclaim` in their simplest form: all victims of a domain are sorted and judged
anew for each job. The oracle of the actions, which look at no more victims than they need.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np

from shoal.engine.gangs.attempt import Attempt
from shoal.engine.queues.disciplines.volcano.after_departures import AfterDepartures
from shoal.engine.queues.disciplines.volcano.amounts import add
from shoal.engine.queues.disciplines.volcano.bundles import Bundle, bundles_of, within_guarantees
from shoal.engine.queues.disciplines.volcano.counted_room import Rows
from shoal.engine.queues.disciplines.volcano.gang_of_job import gang_of_job
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.arguments import number
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.queues.disciplines.volcano.victim_search import RunningPods
from shoal.engine.reasons import Code

MOST_DOMAINS, TAKES_WHOLE = "maxDomains", "allowWholeBundle"
_MOST_DOMAINS = 8
_GANG = ("gang",)
"""The bundles hold to the minima of jobs, in place of this plugin."""


def gangpreempt(session: Session) -> None:
    _run(session, "gangpreempt", is_reclaim=False)


def gangreclaim(session: Session) -> None:
    _run(session, "gangreclaim", is_reclaim=True)


def _run(session: Session, action: str, *, is_reclaim: bool) -> None:
    starving = [
        job
        for job in session.valid_jobs()
        if job.pending and not session.fault_of(job) and session.is_job_starving(job)
    ]
    if starving:
        PlainGangEvictions(session, action, is_reclaim=is_reclaim).run(starving)


class _Wanted(msgspec.Struct, frozen=True):
    """A job, a pod in place of all that it lacks, and the queues whose pods may go for it."""

    job: JobState
    claimant: PodOfJob
    queues: Sequence[str]
    takes_whole: bool


class PlainGangEvictions:
    """One run of an action."""

    def __init__(self, session: Session, action: str, *, is_reclaim: bool) -> None:
        self._session = session
        self._view = AfterDepartures(session)
        self._running = RunningPods(session, self._view.evicted)
        self._is_reclaim = is_reclaim
        self._stuck: set[Hashable] = set()
        """What new jobs lacked that found no room; valid until something is freed."""
        arguments = session.configuration.arguments.get(action, {})
        self._most_domains = max(int(number(arguments, MOST_DOMAINS, _MOST_DOMAINS)), 1)
        self._takes_whole = arguments.get(TAKES_WHOLE, True) not in (False, "false")

    def run(self, starving: Sequence[JobState]) -> None:
        session = self._session
        if self._running.is_empty:
            starving = ()
        for job in sorted(starving, key=lambda each: (session.queue_key(each.queue), session.job_key(each))):
            if session.is_job_starving(job):
                self._serve(job)
        self._view.close()

    def _serve(self, job: JobState) -> None:
        session = self._session
        claimant = self._claimant(job)
        if not claimant.preempts or (self._is_reclaim and session.is_overused(job.queue)):
            return
        if self._is_reclaim and not session.may_reclaim(job.queue, claimant.amounts):
            return
        lacking = tuple(pod.charge for pod in job.pending.values())
        requirement = None if job.gang.facts is None or job.has_parts else job.gang.facts.requirement
        asked = job.queue, job.priority, job.minimum - len(job.ready), lacking, requirement
        if asked in self._stuck:
            return
        queues = self._queues_of(job)
        if len(self._running.rows(queues)) and self._found(job, claimant, queues):
            return
        if not job.has_parts and not job.ready and not job.roles:
            self._stuck.add(asked)

    def _found(self, job: JobState, claimant: PodOfJob, queues: Sequence[str]) -> bool:
        """Whether room was made, or is there."""
        mark = self._view.mark()
        charges = {pod.charge for pod in self._lacking(job)}
        if all(self._session.state.placement.shape(charge).best() >= 0 for charge in charges) and self._placed(job):
            if not self._view.has_departures:
                # Room that is free now is the work of `allocate`.
                self._view.rollback(mark)
            return True
        is_single = not job.has_topology and not job.has_parts and len(self._lacking(job)) == 1
        # Node by node, pods above a minimum go first, wherever they are.
        for takes_whole in dict.fromkeys((False, self._takes_whole)) if is_single else (self._takes_whole,):
            if not takes_whole and not self._running.have_surplus(queues):
                continue
            wanted = _Wanted(job, claimant, queues, takes_whole)
            domains = self._rows_of(wanted) if is_single else islice(self._domains(job), self._most_domains)
            for rows in domains:
                if self._free(wanted, rows):
                    self._stuck.clear()
                    return True
        return False

    def _claimant(self, job: JobState) -> PodOfJob:
        """One pod in place of all that the job lacks."""
        lacking = self._lacking(job)
        amounts: dict[str, float] = {}
        for pod in lacking:
            add(amounts, pod.amounts)
        return msgspec.structs.replace(lacking[0], amounts=amounts, preempts=all(pod.preempts for pod in lacking))

    def _lacking(self, job: JobState) -> list[PodOfJob]:
        waiting = sorted(job.pending.values(), key=self._session.task_key)
        return waiting[: max(job.minimum - len(job.ready) - len(job.best_effort), 1)]

    def _rows_of(self, wanted: _Wanted) -> Iterator[Rows]:
        """For a job that lacks one pod: node by node, in the order of ranks."""
        rows = self._running.rows(wanted.queues)
        for row in self._running.hopeful(rows, wanted.claimant.charge).tolist():
            yield np.array([row], np.int64)

    def _queues_of(self, job: JobState) -> list[str]:
        """The queues whose pods may go for the job."""
        session = self._session
        if not self._is_reclaim:
            return [job.queue]
        queues = session.forest.queues
        return [
            name
            for name, queue in queues.items()
            if queue.is_reclaimable and name != job.queue and session.may_lose(name)
        ]

    def _domains(self, job: JobState) -> Iterator[Rows]:
        """The rows of each domain in which the job may be, the fastest tier first, by rank."""
        cluster, group = self._session.cluster, job.gang.facts
        required = "" if group is None else group.requirement.required
        tree = None if group is None or not required else self._session.state.placement.trees.of(group.requirement)
        if tree is None or tree.level(required) < 0:
            yield cluster.all_rows()
            return
        for level in range(len(tree.levels) - 1, tree.level(required) - 1, -1):
            first = tree.first_rank[level]
            for domain in np.argsort(first, kind="stable").tolist():
                yield tree.rows_of(level, domain)

    def _free(self, wanted: _Wanted, rows: Rows) -> bool:
        job, bundles = wanted.job, self._bundles(wanted, rows)
        if not bundles:
            return False
        mark = self._view.mark()

        def suffices(count: int) -> bool:
            fits = self._fits_without(bundles[:count], job)
            self._view.rollback(mark)
            return fits

        most = 1
        while not suffices(most):
            if most == len(bundles):
                return False
            most = min(2 * most, len(bundles))
        least = most // 2 + 1
        needed = bundles[: least + bisect_left(range(least, most), True, key=suffices)]
        for bundle in reversed(needed[:-1]):
            fewer = [each for each in needed if each is not bundle]
            if self._fits_without(fewer, job):
                needed = fewer
            self._view.rollback(mark)
        return self._fits_without(needed, job)

    def _bundles(self, wanted: _Wanted, rows: Rows) -> list[Bundle]:
        session, job, claimant = self._session, wanted.job, wanted.claimant
        there = np.intersect1d(rows, self._running.rows(wanted.queues)).tolist()
        candidates = [pod for row in there for pod in self._running.on(row, wanted.queues) if pod.job != job.name]
        if not wanted.takes_whole:
            jobs = session.jobs
            candidates = [pod for pod in candidates if len(jobs[pod.job].ready) > jobs[pod.job].minimum]
        select = session.reclaimable if self._is_reclaim else session.preemptable
        if not candidates or not select(claimant, candidates, without=_GANG):
            return []
        ordered = session.in_victim_order(candidates, job.queue)
        victims = session.within_budgets(select(claimant, ordered, without=_GANG))
        bundles = bundles_of(session, session.in_victim_order(victims, job.queue), takes_whole=wanted.takes_whole)
        # The plugins judge pod by pod; the rest of a job that goes as a whole was not among what they were asked about.
        return within_guarantees(session, bundles, job.queue) if self._is_reclaim else bundles

    def _fits_without(self, bundles: Sequence[Bundle], job: JobState) -> bool:
        """Evict the bundles, and place all that the job lacks."""
        for bundle in bundles:
            for pod in bundle.pods:
                self._view.evict(pod, job.name)
        return self._placed(job)

    def _placed(self, job: JobState) -> bool:
        session = self._session
        mark = session.state.ledger.mark()
        pods = dict(job.pending)
        if Attempt(session.state.fitter, gang_of_job(session, job)).step() is not Code.PLACED:
            return False
        self._view.promise_placed(mark, pods)
        return True
