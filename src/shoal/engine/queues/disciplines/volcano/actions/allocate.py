"""The action `allocate`: gives nodes to pods of admitted jobs, queue by queue, job by job.

Each turn takes the first queue that is not overused, and its first job. The job gets what it lacks to be ready, all or
nothing, and from then on one pod a turn; queues and jobs are put in order anew after each. A pod that fits nowhere now
may be promised capacity that terminating pods free; a job that would be ready with promises keeps them all. Jobs that
were promised capacity come first: others have left theirs for them, and would otherwise take it back.
"""

from __future__ import annotations

from collections import Counter, deque
from heapq import heapify, heappop, heappush

from shoal.engine.gangs.attempt import Attempt
from shoal.engine.plan import Nominate
from shoal.engine.queues.disciplines.volcano.departing import DepartingCapacity
from shoal.engine.queues.disciplines.volcano.gang_of_job import gang_of_job
from shoal.engine.queues.disciplines.volcano.hooks import Key
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.reasons import Code

OVERUSED = "queue {} is overused"
NOT_ALLOCATABLE = "queue {} has not enough quota left"


def allocate(session: Session) -> None:
    """A cycle that its limit has cut is continued by the next one where it ended."""
    allocation = session.unfinished
    if not isinstance(allocation, _Allocation):
        allocation = _Allocation(session)
    allocation.run()
    session.unfinished = allocation if session.state.is_cut else None


class _Allocation:
    """One run of the action."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._departing = DepartingCapacity(session)
        self._tasks: dict[str, deque[PodOfJob]] = {}
        self._jobs: dict[str, list[tuple[Key, JobState]]] = {}
        for job in session.valid_jobs():
            if not job.pending:
                continue
            if fault := session.fault_of(job):
                session.refusals[job.name] = fault
                continue
            self._jobs.setdefault(job.queue, []).append((session.job_key(job), job))
        self._queues = [(session.queue_key(name), name) for name in self._jobs]
        heapify(self._queues)
        for jobs in self._jobs.values():
            heapify(jobs)

    def run(self) -> None:
        session = self._session
        self._serve_promised()
        while self._queues and not session.state.is_full():
            _, name = heappop(self._queues)
            if session.is_overused(name):
                self._refuse_all(name)
                continue
            jobs = self._jobs[name]
            if not jobs:
                continue
            _, job = heappop(jobs)
            helped = bool(job.pending) and self._turn(job)
            if helped and job.pending and self._has_tasks(job):
                heappush(jobs, (session.job_key(job), job))
            if helped or not job.pending or session.forest.queues[name].dequeue_strategy != "fifo":
                heappush(self._queues, (session.queue_key(name), name))

    def _serve_promised(self) -> None:
        session = self._session
        renewed = session.state.renewed
        jobs = [job for waiting in self._jobs.values() for _, job in waiting] if renewed else []
        promised = [job for job in jobs if not renewed.isdisjoint(job.pending)]
        for job in sorted(promised, key=lambda each: (session.queue_key(each.queue), session.job_key(each))):
            while not (renewed.isdisjoint(job.pending) or session.is_overused(job.queue)):
                # Of a job that is ready, a pod may find neither a node nor a promise any more.
                if not self._turn(job) or not self._has_tasks(job):
                    break

    def _refuse_all(self, queue: str) -> None:
        for _, job in self._jobs[queue]:
            self._session.refusals[job.name] = OVERUSED.format(queue)

    def _has_tasks(self, job: JobState) -> bool:
        return job.has_topology or job.has_parts or bool(self._tasks.get(job.name))

    def _turn(self, job: JobState) -> bool:
        """Whether the job is ready after it, so that it may have another turn."""
        if job.has_topology or job.has_parts:
            return self._gang_turn(job)
        tasks = self._tasks.get(job.name)
        if tasks is None:
            tasks = self._tasks[job.name] = deque(sorted(job.pending.values(), key=self._session.task_key))
        return self._place(job, tasks)

    def _place(self, job: JobState, tasks: deque[PodOfJob]) -> bool:
        session = self._session
        mark = session.mark()
        placed: list[PodOfJob] = []
        failed: Counter[str] = Counter()
        while tasks:
            pod = tasks.popleft()
            if not session.is_allocatable(job.queue, pod.amounts):
                session.refusals[job.name] = NOT_ALLOCATABLE.format(job.queue)
                continue
            if session.state.fitter.pod(pod.key, session.rows_for(pod)):
                session.note_placed(pod)
                placed.append(pod)
            elif not self._departing.promise(pod):
                failed[pod.role] += 1
                session.refusals.pop(job.name, None)
                if not job.may_still_be_ready(failed):
                    break
                continue
            if tasks and session.is_job_ready(job):
                break
        if session.is_job_ready(job):
            session.state.place([pod.key for pod in placed])
            return True
        if session.is_job_pipelined(job):
            self._promise_all(mark, placed)
        else:
            session.rollback(mark)
        return False

    def _promise_all(self, mark: tuple[int, int, int], placed: list[PodOfJob]) -> None:
        """A job that has to wait for some of its capacity starts none of its pods yet."""
        session, cluster = self._session, self._session.cluster
        promised = [each.pod for each in session.state.intentions[mark[2] :] if isinstance(each, Nominate)]
        keys = dict.fromkeys([*(pod.key for pod in placed), *promised])
        rows = [(session.pods[key], cluster.pods[key].row, cluster.pods[key].grant) for key in keys]
        session.rollback(mark)
        for pod, row, grant in rows:
            session.promise(pod, row, grant)

    def _gang_turn(self, job: JobState) -> bool:
        """A job whose pods must be close together, or that has parts: the search for gangs places what it lacks."""
        session = self._session
        gang = gang_of_job(session, job)
        if not gang.waiting:
            session.refusals[job.name] = NOT_ALLOCATABLE.format(job.queue)
            return False
        mark = session.mark()
        pods = dict(job.pending)
        code = Attempt(session.state.fitter, gang).step()
        session.state.why[job.name] = code
        if code is Code.PLACED:
            placed = session.state.ledger.placed_since(mark[0])
            for key in placed:
                session.note_placed(pods[key])
            session.state.place(placed)
            return True
        self._departing.promise_gang(gang, pods)
        return False
