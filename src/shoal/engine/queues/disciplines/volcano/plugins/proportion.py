"""Shares the cluster among queues by weight: each queue may use its share, and others may reclaim what is beyond it."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.api.resources import PODS
from shoal.engine.queues.disciplines.volcano.amounts import Figures, dominant_share, holds, within_asked
from shoal.engine.queues.disciplines.volcano.configuration import PluginOption
from shoal.engine.queues.disciplines.volcano.division import WeightedQueue, divide, real_capability
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, Rank
from shoal.engine.queues.disciplines.volcano.plugins.session_view import SessionView


class Proportion(Plugin):
    defines = frozenset({"QueueOrder", "Reclaimable", "Overused", "Allocatable", "Preemptive", "JobEnqueued"})

    def __init__(self, session: SessionView, option: PluginOption) -> None:
        super().__init__(session, option)
        queues, accounts = session.forest.queues, session.accounts
        guaranteed: dict[str, float] = {}
        for queue in queues.values():
            for name, amount in queue.guarantee.items():
                guaranteed[name] = guaranteed.get(name, 0.0) + amount
        in_use = [queues[name] for name in accounts.in_use if name in queues]
        self.real_capability = {
            queue.name: real_capability(queue.capability, queue.guarantee, session.total, guaranteed)
            for queue in in_use
        }
        self.deserved = divide(
            session.total,
            [
                WeightedQueue(
                    queue.name,
                    queue.weight,
                    accounts.request(queue.name),
                    self.real_capability[queue.name],
                    queue.guarantee,
                )
                for queue in in_use
            ],
        )

    def queue_order(self, queue: str) -> Rank:
        share = dominant_share(self.session.accounts.allocated(queue), self.deserved.get(queue, {}))
        return -self.session.forest.queues[queue].priority, share

    def is_overused(self, queue: str) -> bool:
        """Whether the share is used up in all resources. Pods are no resource of that kind: every pod asks for one."""
        deserved = {name: amount for name, amount in self.deserved.get(queue, {}).items() if name != PODS}
        return holds(self.session.accounts.allocated(queue), deserved)

    def is_allocatable(self, queue: str, amounts: Figures) -> bool:
        if not self.session.forest.is_open(queue):
            return False
        return within_asked(self.deserved.get(queue, {}), self.session.accounts.allocated(queue), amounts)

    def may_reclaim(self, queue: str, amounts: Figures) -> bool:
        return self.is_allocatable(queue, amounts)

    def vote(self, job: JobState) -> str | None:
        if not self.session.forest.is_open(job.queue):
            return f"queue {job.queue} is not open"
        asked = job.facts.min_resources
        if asked is None:
            return ""
        limit = self.real_capability[job.queue]
        used = self.session.accounts.after_admission(job.queue, asked)
        short = [name for name in asked if asked[name] > 0 and not holds(limit, {name: used[name]})]
        return ", ".join(f"insufficient {name}" for name in sorted(short))

    def may_lose(self, queue: str) -> bool:
        return not holds(self.deserved.get(queue, {}), self.session.accounts.allocated(queue))

    def reclaimable(self, _claimant: PodOfJob, candidates: Sequence[PodOfJob]) -> list[PodOfJob]:
        left: dict[str, dict[str, float]] = {}
        found: list[PodOfJob] = []
        for pod in candidates:
            queue = self.session.jobs[pod.job].queue
            allocated = left.get(queue)
            if allocated is None:
                allocated = left[queue] = dict(self.session.accounts.allocated(queue))
            elif not allocated:
                continue
            if holds(self.deserved.get(queue, {}), allocated):
                # Nothing more of this queue goes.
                allocated.clear()
                continue
            found.append(pod)
            for name, amount in pod.amounts.items():
                allocated[name] = allocated.get(name, 0.0) - amount
        return found
