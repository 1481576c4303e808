"""Holds a job to its minimum: ready or pipelined as a whole, and never preempted or reclaimed below the minimum."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, Rank


class Gang(Plugin):
    defines = frozenset({"JobOrder", "JobReady", "JobPipelined", "JobStarving", "Preemptable", "Reclaimable"})

    def job_order(self, job: JobState) -> Rank:
        """Jobs that are not ready come first."""
        return float(job.is_at_minimum)

    def is_job_ready(self, job: JobState) -> bool:
        return job.is_ready

    def is_job_pipelined(self, job: JobState) -> bool:
        return job.is_pipelined

    def is_job_starving(self, job: JobState) -> bool:
        return job.is_starving

    def invalid(self, job: JobState) -> str:
        if job.valid < job.minimum:
            return f"not enough valid tasks for gang scheduling, valid: {job.valid}, min: {job.minimum}"
        return "" if job.can_have_roles else "not enough valid pods of each task for gang scheduling"

    def preemptable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        return self._above_minimum(candidates)

    def reclaimable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        return self._above_minimum(candidates)

    def _above_minimum(self, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        left: dict[str, int] = {}
        found: list[PodOfJob] = []
        for pod in candidates:
            job = self.session.jobs[pod.job]
            spare = left.setdefault(pod.job, len(job.ready) - job.minimum)
            if spare > 0:
                left[pod.job] -= 1
                found.append(pod)
        return found
