"""Orders jobs and pods by priority; only jobs, or pods of the same job, of lower priority are preempted."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, Rank


class Priority(Plugin):
    defines = frozenset({"JobOrder", "TaskOrder", "Preemptable", "JobStarving"})

    def job_order(self, job: JobState) -> Rank:
        return -job.priority

    def task_order(self, pod: PodOfJob) -> Rank:
        return -pod.priority

    def is_job_starving(self, job: JobState) -> bool:
        return len(job.ready) + len(job.pipelined) < job.total

    def preemptable(self, claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        jobs = self.session.jobs
        priority = jobs[claimant.job].priority
        return [
            pod
            for pod in candidates
            if (pod.priority < claimant.priority if pod.job == claimant.job else jobs[pod.job].priority < priority)
        ]
