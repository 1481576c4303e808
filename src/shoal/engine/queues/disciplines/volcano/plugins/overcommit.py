"""Admits jobs as long as their `minResources` fit into the cluster times a factor."""

from __future__ import annotations

from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.plugins.arguments import number
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin

_FACTOR = 1.2


class Overcommit(Plugin):
    defines = frozenset({"JobEnqueued"})

    def vote(self, job: JobState) -> str | None:
        asked = job.facts.min_resources
        if asked is None:
            return ""
        factor = max(number(self.arguments, "overcommit-factor", _FACTOR), 1.0)
        session = self.session
        used = {name: amount for name, amount in asked.items() if amount > 0}
        for queue in session.accounts.in_use:
            for sums in (session.accounts.allocated(queue), session.accounts.reserved(queue)):
                for name in used:
                    used[name] += sums.get(name, 0)
        short = [name for name, amount in used.items() if amount > session.total.get(name, 0) * factor]
        return ", ".join(f"insufficient {name} in the cluster" for name in sorted(short))
