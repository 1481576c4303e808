"""The action `enqueue`: admits pending jobs, queue by queue, job by job, as far as the plugins permit."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from shoal.engine.queues.disciplines.volcano.group_phases import QUOTA_INSUFFICIENT
from shoal.engine.queues.disciplines.volcano.hooks import Key
from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.session import Session


def enqueue(session: Session) -> None:
    jobs: dict[str, list[tuple[Key, JobState]]] = {}
    for job in session.jobs.values():
        if job.facts.is_enqueued or job.name in session.enqueued:
            continue
        if fault := session.forest.refusal(job.queue):
            session.refusals[job.name] = fault
            continue
        jobs.setdefault(job.queue, []).append((session.job_key(job), job))
    queues = [(session.queue_key(name), name) for name in jobs]
    heapify(queues)
    for waiting in jobs.values():
        heapify(waiting)
    while queues:
        _, name = heappop(queues)
        if not jobs[name]:
            continue
        _, job = heappop(jobs[name])
        # A job that states no minResources is always admitted.
        refusal = "" if job.facts.min_resources is None else session.enqueue_refusal(job)
        if refusal:
            session.refusals[job.name] = f"{QUOTA_INSUFFICIENT}: {refusal}"
            if session.forest.queues[name].dequeue_strategy == "fifo":
                for _, behind in jobs[name]:
                    session.refusals[behind.name] = session.refusals[job.name]
                continue
        else:
            session.enqueued[job.name] = None
            session.refusals.pop(job.name, None)
            session.accounts.reserve(job)
        heappush(queues, (session.queue_key(name), name))
