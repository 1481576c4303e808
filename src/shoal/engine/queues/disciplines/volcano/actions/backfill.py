"""The action `backfill`: gives nodes to pods that request nothing, of jobs that are ready with them."""

from __future__ import annotations

from shoal.engine.queues.disciplines.volcano.session import Session


def backfill(session: Session) -> None:
    jobs = [job for job in session.valid_jobs() if job.best_effort and not session.fault_of(job)]
    for job in sorted(jobs, key=lambda each: (session.queue_key(each.queue), session.job_key(each))):
        if session.state.is_full():
            return
        if not session.is_job_ready(job):
            continue
        mark = session.mark()
        placed: list[str] = []
        for pod in sorted(job.best_effort.values(), key=session.task_key):
            if session.state.fitter.pod(pod.key, session.rows_for(pod)):
                session.note_placed(pod)
                placed.append(pod.key)
        if session.is_job_ready(job):
            session.state.place(placed)
        else:
            session.rollback(mark)
