"""Admits jobs that have waited longer than agreed, and tries jobs with an earlier deadline first."""

from __future__ import annotations

from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.plugins.arguments import duration_s
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, Rank

_NEVER = float("inf")
WAITING_TIME = "sla-waiting-time"


class Sla(Plugin):
    defines = frozenset({"JobOrder", "JobEnqueued"})

    def job_order(self, job: JobState) -> Rank:
        return self.deadline_s(job)

    def vote(self, job: JobState) -> str | None:
        return "" if self.session.now_s >= self.deadline_s(job) else None

    def changes_s(self) -> float:
        deadlines = [self.deadline_s(job) for job in self.session.jobs.values() if not job.facts.is_enqueued]
        return min((each for each in deadlines if each > self.session.now_s), default=_NEVER)

    def deadline_s(self, job: JobState) -> float:
        """When the job has waited as long as its own annotation, or else the argument of the plugin, allows."""
        wait_s = job.facts.waiting_time_s
        if wait_s is None:
            wait_s = duration_s(self.arguments.get(WAITING_TIME))
        return _NEVER if wait_s is None or wait_s <= 0 else job.facts.created_s + wait_s
