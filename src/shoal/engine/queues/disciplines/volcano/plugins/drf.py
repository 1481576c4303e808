"""Orders jobs by their dominant share of the cluster, and preempts jobs whose share stays at least the claimant's."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.queues.disciplines.volcano.amounts import Figures, dominant_share
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, Rank

_EQUAL = 1e-6


class Drf(Plugin):
    defines = frozenset({"JobOrder", "Preemptable"})

    def job_order(self, job: JobState) -> Rank:
        return self._share(job.allocated)

    def preemptable(self, claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        session = self.session
        own = dict(session.jobs[claimant.job].allocated)
        for name, amount in claimant.amounts.items():
            own[name] = own.get(name, 0.0) + amount
        share = self._share(own)
        left: dict[str, dict[str, float]] = {}
        found: list[PodOfJob] = []
        for pod in candidates:
            rest = left.setdefault(pod.job, dict(session.jobs[pod.job].allocated))
            for name, amount in pod.amounts.items():
                rest[name] = rest.get(name, 0.0) - amount
            if share <= self._share(rest) + _EQUAL:
                found.append(pod)
        return found

    def _share(self, amounts: Figures) -> float:
        return dominant_share(amounts, self.session.total)
