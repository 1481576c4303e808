"""Protects pods whose disruption budget allows no more evictions."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin


class Pdb(Plugin):
    """The session keeps disruption budgets in any case; with the plugin they count among the hooks of its tier."""

    defines = frozenset({"Preemptable", "Reclaimable"})

    def preemptable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        return self.session.within_budgets(candidates)

    def reclaimable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        return self.session.within_budgets(candidates)
