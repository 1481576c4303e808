"""Converts a job of a session to a gang of the engine: its minima with the hooks that are on, and the pods that have
quota."""

from __future__ import annotations

from shoal.engine.gang_members import Gang
from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.session import Session


def gang_of_job(session: Session, job: JobState, *, is_bounded: bool = True) -> Gang:
    """`is_bounded`: without the pods that the queue has no quota for, counted in the order in which they are tried."""
    allowed: dict[str, None] = {}
    for pod in sorted(job.pending.values(), key=session.task_key):
        if is_bounded:
            if not session.is_allocatable(job.queue, pod.amounts):
                continue
            session.accounts.charge(job.queue, pod.amounts)
        allowed[pod.key] = None
    if is_bounded:
        for key in allowed:
            session.accounts.charge(job.queue, job.pending[key].amounts, -1)
    facts = job.group_facts(holds_minimum=session.holds_minimum)
    return Gang(job.name, facts, job.gang.fault, job.gang.turn, allowed, job.gang.running, job.gang.was_on)
