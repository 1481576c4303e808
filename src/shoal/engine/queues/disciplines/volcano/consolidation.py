"""Moves running pods so that a starving job fits where capacity is free but scattered: the plugin `rescheduling`.

Shoal's form of that plugin: Volcano's evicts pods of busy or idle nodes from time to time, whether or not any job waits
and whether or not they find a place. Here a pod moves only if it and the waiting job have places at the same time,
so that nothing moves back and forth. The pods that move keep their quota, and the job needs its own.

Jobs are served in the order of `allocate`. Plugins that restrict the nodes of a pod are not known to the search: while
one of them does, nothing is moved.
"""

from __future__ import annotations

from shoal.engine.pods import PodAllocation, PodState
from shoal.engine.preemption.preemptor import gang_preemptor
from shoal.engine.queues.disciplines.volcano.configuration import CONSOLIDATES
from shoal.engine.queues.disciplines.volcano.gang_of_job import gang_of_job
from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.plugins.conformance import SYSTEM_NAMESPACE, SYSTEM_PRIORITY
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.steps.consolidate import Consolidation


def consolidate(session: Session) -> None:
    """The last step of a session, after all actions."""
    names = {option.name for option in session.configuration.plugins()}
    if CONSOLIDATES not in names or session.state.is_full():
        return
    starving = [
        job
        for job in session.valid_jobs()
        if job.pending and not session.fault_of(job) and len(job.ready) + len(job.pipelined) < max(job.minimum, 1)
    ]
    if not starving or any(session.rows_for(pod) is not None for job in starving for pod in job.pending.values()):
        return
    session.is_final &= all(pod.state is not PodState.ASSUMED for pod in session.cluster.pods.values())
    spares_system = "conformance" in names

    def may_move(allocation: PodAllocation) -> bool:
        job = session.jobs.get(allocation.who.group)
        if job is not None and job.queue in session.forest.protected:
            return False
        return not spares_system or not (
            allocation.who.traits.namespace == SYSTEM_NAMESPACE or allocation.priority >= SYSTEM_PRIORITY
        )

    step = Consolidation(session.state, may_move=may_move)
    for job in sorted(starving, key=lambda each: (session.queue_key(each.queue), session.job_key(each))):
        _serve(session, step, job)
    step.close()


def _serve(session: Session, step: Consolidation, job: JobState) -> None:
    """The job gets its minimum or nothing."""
    if session.is_overused(job.queue):
        return
    claim = gang_preemptor(session.cluster, gang_of_job(session, job))
    if claim is None or not step.ask(claim):
        return
    for key in claim.pods:
        session.note_pipelined(session.pods[key])
