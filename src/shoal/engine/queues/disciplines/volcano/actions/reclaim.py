"""The action `reclaim`: pods of starving jobs take the place of pods of other queues that use more than their share.

Queue by queue, job by job, pod by pod. The first node that suffices is used, with its free and departing capacity
counted. Only pods of queues that are reclaimable yield. A job with a hard network topology is served by `gangreclaim`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from shoal.engine.charges import Charge
from shoal.engine.queues.disciplines.volcano.after_departures import AfterDepartures
from shoal.engine.queues.disciplines.volcano.hooks import Key
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.queues.disciplines.volcano.victim_search import RunningPods, free_row


def reclaim(session: Session) -> None:
    starving = [
        job
        for job in session.valid_jobs()
        if (job.pending or job.best_effort) and not session.fault_of(job) and session.is_job_starving(job)
    ]
    if starving and session.tiers_having("Reclaimable"):
        _Reclaim(session, starving).run()


class _Reclaim:
    """One run of the action."""

    def __init__(self, session: Session, starving: list[JobState]) -> None:
        self._session = session
        self._view = AfterDepartures(session)
        self._running = RunningPods(session, self._view.evicted)
        self._stuck: set[tuple[str, Charge]] = set()
        """What pods of a queue ask for that nothing could be freed for; valid until something is freed."""
        self._jobs: dict[str, list[tuple[Key, JobState]]] = {}
        self._tasks: dict[str, list[PodOfJob]] = {}
        for job in starving:
            self._jobs.setdefault(job.queue, []).append((session.job_key(job), job))
        self._reclaimable = [name for name, queue in session.forest.queues.items() if queue.is_reclaimable]

    def run(self) -> None:
        session = self._session
        queues = [(session.queue_key(name), name) for name in self._jobs]
        heapify(queues)
        for jobs in self._jobs.values():
            heapify(jobs)
        while queues and not self._running.is_empty:
            _, name = heappop(queues)
            if session.is_overused(name) or not self._jobs[name]:
                continue
            _, job = heappop(self._jobs[name])
            if self._turn(job):
                heappush(self._jobs[name], (session.job_key(job), job))
            heappush(queues, (session.queue_key(name), name))
        self._view.close()

    def _turn(self, job: JobState) -> bool:
        """Whether a pod of the job got a place, so that the job may have another turn."""
        session = self._session
        tasks = self._tasks.get(job.name)
        if tasks is None:
            waiting = (*job.pending.values(), *job.best_effort.values())
            tasks = self._tasks[job.name] = sorted(waiting, key=session.task_key, reverse=True)
            if not self._may_be_whole(job):
                tasks.clear()
        if not tasks or not session.is_job_starving(job):
            return False
        claimant = tasks.pop()
        if not claimant.preempts or not session.may_reclaim(job.queue, claimant.amounts):
            return False
        return self._serve(job.queue, claimant)

    def _may_be_whole(self, job: JobState) -> bool:
        """Whether, by the count, the nodes can hold what the job lacks of its minimum. Otherwise pods would be evicted
        for it again and again, and it would never start."""
        lacks = job.minimum - len(job.ready) - len(job.pipelined) - len(job.best_effort)
        charges = {pod.charge for pod in job.pending.values()}
        if lacks < 2 or len(charges) != 1 or not self._session.holds_minimum:
            return True
        return self._running.may_hold(next(iter(charges)), lacks)

    def _serve(self, queue: str, claimant: PodOfJob) -> bool:
        session = self._session
        asked = queue, claimant.charge
        if asked in self._stuck:
            return False
        others = [name for name in self._reclaimable if name != queue and session.may_lose(name)]
        rows = self._running.hopeful(self._running.rows(others), claimant.charge)
        suitable = set(session.state.placement.by_preference(claimant.charge, rows).tolist())
        allowed = session.rows_for(claimant)
        if allowed is not None:
            suitable &= set(allowed.tolist())
        for row in rows.tolist():
            if row not in suitable:
                continue
            candidates = self._running.on(row, others)
            if not session.reclaimable(claimant, candidates):
                # The order decides which pods are above a minimum or a share, not whether any is.
                continue
            ordered = session.in_victim_order(candidates, queue, claimant)
            victims = session.within_budgets(session.reclaimable(claimant, ordered))
            mark = self._view.mark()
            if victims and free_row(self._view, claimant, row, victims):
                if not self._view.has_departures:
                    self._view.rollback(mark)
                    return False
                self._stuck.clear()
                return True
        self._stuck.add(asked)
        return False
