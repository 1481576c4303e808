"""The action `preempt`: pods of a starving job take the place of less important pods of the same queue.

First between jobs: what a job took is kept only if the whole job would then be ready or has capacity promised. Then
between pods of one job. Nodes are tried in the order of their scores; a job with a network topology is not served, that
is the work of `gangpreempt`.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

import numpy as np

from shoal.engine.queues.disciplines.volcano.after_departures import AfterDepartures
from shoal.engine.queues.disciplines.volcano.counted_room import Rows
from shoal.engine.queues.disciplines.volcano.hooks import Key
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.queue_forest import BEST_FIT
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.queues.disciplines.volcano.victim_search import (
    RunningPods,
    first_victims,
    free_row,
    least_victims,
)

TOPOLOGY_AWARE = "enableTopologyAwarePreemption"
MayYield = Callable[[PodOfJob], bool]


def preempt(session: Session) -> None:
    starving = [
        job
        for job in session.valid_jobs()
        if (job.pending or job.best_effort)
        and not job.has_topology
        and not session.fault_of(job)
        and session.is_job_starving(job)
    ]
    if starving and session.tiers_having("Preemptable"):
        _Preemption(session, starving).run()


class _Preemption:
    """One run of the action."""

    def __init__(self, session: Session, starving: list[JobState]) -> None:
        self._session = session
        self._view = AfterDepartures(session)
        self._running = RunningPods(session, self._view.evicted)
        self._starving = starving
        self._stuck: set[Key] = set()
        """What could not be served between jobs; valid until something is freed."""
        self._has_memory = all(plugin.name != "drf" for plugin in session.having("Preemptable"))
        """With drf a pod's victims depend on the share of its job, so that its like may have others."""
        self._simulates = session.configuration.argument("preempt", TOPOLOGY_AWARE, False) in (True, "true")

    def run(self) -> None:
        by_queue: dict[str, list[tuple[Key, JobState]]] = {}
        for job in self._starving if not self._running.is_empty else ():
            by_queue.setdefault(job.queue, []).append((self._session.job_key(job), job))
        for queue in sorted(by_queue, key=self._session.queue_key):
            self._between_jobs(by_queue[queue])
        for job in self._starving:
            self._inside_job(job)
        self._view.close()

    def _between_jobs(self, jobs: list[tuple[Key, JobState]]) -> None:
        session = self._session
        heapify(jobs)
        tasks: dict[str, list[PodOfJob]] = {}
        while jobs:
            _, job = heappop(jobs)
            left = tasks.setdefault(job.name, _in_turn(session, job))
            mark = self._view.mark()
            helped = False
            while left and session.is_job_starving(job):
                helped = self._serve_between(left.pop(), job)
            if not session.is_job_pipelined(job) or not self._view.has_departures:
                if self._view.mark() != mark:
                    # What could not be served meanwhile may be served again.
                    self._stuck.clear()
                self._view.rollback(mark)
            elif helped:
                heappush(jobs, (session.job_key(job), job))

    def _serve_between(self, claimant: PodOfJob, job: JobState) -> bool:
        asked = job.queue, claimant.charge, claimant.preempts, job.priority
        if asked in self._stuck:
            return False
        if self._serve(claimant, lambda pod: pod.job != job.name):
            self._stuck.clear()
            return True
        if self._has_memory:
            self._stuck.add(asked)
        return False

    def _inside_job(self, job: JobState) -> None:
        if not any(pod.is_preemptible for pod in job.ready.values()):
            return
        tasks = _in_turn(self._session, job)
        mark = self._view.mark()
        while tasks and self._serve(tasks.pop(), lambda pod: pod.job == job.name):
            pass
        if not self._view.has_departures:
            self._view.rollback(mark)

    def _serve(self, claimant: PodOfJob, may_yield: MayYield) -> bool:
        session = self._session
        if not claimant.preempts:
            return False
        queue = session.jobs[claimant.job].queue
        fewest = session.forest.queues[queue].victims == BEST_FIT
        best: tuple[Key, int, list[PodOfJob]] | None = None
        for row in self._rows(claimant, queue).tolist():
            candidates = [
                pod
                for pod in self._running.on(row, (queue,))
                if may_yield(pod) and (pod.is_best_effort or not claimant.is_best_effort)
            ]
            if not candidates or not session.preemptable(claimant, candidates):
                continue
            ordered = session.in_victim_order(candidates, queue, claimant)
            ordered = session.within_budgets(session.preemptable(claimant, ordered))
            if not ordered:
                continue
            if fewest:
                # The largest go first, so that the first ones that suffice are the fewest.
                most = len(ordered) if best is None else len(best[2]) - 1
                needed = first_victims(self._view, claimant, row, ordered[:most], holds=self._holds)
                if needed:
                    best = (), row, needed
                if len(needed) == 1:
                    break
                continue
            if not self._simulates:
                if free_row(self._view, claimant, row, ordered, holds=self._holds):
                    return True
                continue
            needed = least_victims(self._view, claimant, row, ordered, holds=self._holds)
            if not needed:
                continue
            price = _price(session, needed)
            if best is None or price < best[0]:
                best = price, row, needed
        return best is not None and free_row(self._view, claimant, best[1], best[2], holds=self._holds)

    def _holds(self, claimant: PodOfJob) -> bool:
        return self._session.is_allocatable(self._session.jobs[claimant.job].queue, claimant.amounts)

    def _rows(self, claimant: PodOfJob, queue: str) -> Rows:
        rows = self._running.hopeful(self._running.rows((queue,)), claimant.charge)
        allowed = self._session.rows_for(claimant)
        if allowed is not None:
            rows = rows[np.isin(rows, allowed)]
        return self._session.state.placement.by_preference(claimant.charge, rows)


def _in_turn(session: Session, job: JobState) -> list[PodOfJob]:
    """The pods that wait, the first to be served last in the list."""
    waiting = (*job.pending.values(), *job.best_effort.values())
    return sorted(waiting, key=session.task_key, reverse=True)


def _price(session: Session, victims: list[PodOfJob]) -> Key:
    """Of several nodes the one with the least important victims, the least sum of priorities, the fewest victims, and
    the latest start."""
    priorities = [session.jobs[pod.job].priority for pod in victims]
    return max(priorities), sum(priorities), len(victims), -min(pod.since_s for pod in victims)
