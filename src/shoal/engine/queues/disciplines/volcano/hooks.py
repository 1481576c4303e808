"""Asks the plugins of a session in the order of their tiers, each only through the hooks that are on.

A hook that no plugin has on has the answer that Volcano gives without plugins: jobs are ready, queues are not overused,
no job is starving, and no pod may be preempted or reclaimed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin
from shoal.engine.queues.disciplines.volcano.preemption_policies import policy_key
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest

Key = tuple[Any, ...]


class Hooks:
    """The plugins of one session."""

    forest: QueueForest
    jobs: dict[str, JobState]

    def __init__(self, tiers: Sequence[Sequence[Plugin]]) -> None:
        self.plugins = [plugin for tier in tiers for plugin in tier]
        self._tiers = tiers
        self._by_hook: dict[str, list[list[Plugin]]] = {}
        self._flat: dict[str, list[Plugin]] = {}

    def tiers_having(self, hook: str, without: Collection[str] = ()) -> list[list[Plugin]]:
        """The plugins that define the hook and have it on, by tier."""
        if without:
            tiers = ([plugin for plugin in tier if plugin.name not in without] for tier in self.tiers_having(hook))
            return [tier for tier in tiers if tier]
        found = self._by_hook.get(hook)
        if found is None:
            tiers = ([plugin for plugin in tier if hook in plugin.hooks & plugin.defines] for tier in self._tiers)
            found = self._by_hook[hook] = [tier for tier in tiers if tier]
        return found

    def having(self, hook: str) -> list[Plugin]:
        found = self._flat.get(hook)
        if found is None:
            found = self._flat[hook] = [plugin for tier in self.tiers_having(hook) for plugin in tier]
        return found

    # -- order ------------------------------------------------------------------------------------------------------

    def job_key(self, job: JobState) -> Key:
        """Sorts the jobs of a queue: the first is tried first."""
        return (*self._job_ranks(job), job.turn, job.name)

    def victim_key(self, job: JobState) -> Key:
        """Sorts the jobs of a queue: the last is evicted first. Of jobs that are equal by plugins and age that is the
        one that loses least."""
        return (*self._job_ranks(job), -job.loses, job.turn, job.name)

    def _job_ranks(self, job: JobState) -> Key:
        return (*[plugin.job_order(job) for plugin in self.having("JobOrder")], job.facts.created_s)

    def queue_key(self, name: str) -> Key:
        """Sorts queues: the first is served first."""
        return (*[plugin.queue_order(name) for plugin in self.having("QueueOrder")], self.forest.place(name))

    def task_key(self, pod: PodOfJob) -> Key:
        """Sorts the pods of a job: the first is tried first."""
        return (*[plugin.task_order(pod) for plugin in self.having("TaskOrder")], pod.order, pod.turn, pod.key)

    def in_victim_order(
        self, victims: Sequence[PodOfJob], claimant_queue: str, claimant: PodOfJob | None = None
    ) -> list[PodOfJob]:
        """Those to be evicted first come first: the last pod of the last job of the last queue. In a tree of queues the
        nearest relatives of the claimant's queue come first. Of the pods of a queue those come first that its policy
        names, if a claimant is given."""
        if len(victims) < 2:
            return list(victims)
        jobs = {pod.job: self.jobs[pod.job] for pod in victims}
        queues = {job.queue for job in jobs.values()}
        job_rank = _ranks(jobs, lambda name: self.victim_key(jobs[name]))
        queue_rank = _ranks(queues, self.queue_key)
        pods = {pod.key: pod for pod in victims}
        task_rank = _ranks(pods, lambda key: self.task_key(pods[key]))
        has_tree = any(plugin.compares_relatives for plugin in self.having("QueueOrder"))
        distance = {name: self.forest.distance(claimant_queue, name) if has_tree else 0 for name in queues}

        def key(pod: PodOfJob) -> Key:
            job = jobs[pod.job]
            queue = job.queue
            first = policy_key(self.forest.queues[queue].victims, job, pod, claimant) if claimant is not None else ()
            return distance[queue], -queue_rank[queue], *first, -job_rank[pod.job], -task_rank[pod.key]

        return sorted(victims, key=key)

    # -- jobs -------------------------------------------------------------------------------------------------------

    def is_job_ready(self, job: JobState) -> bool:
        return all(plugin.is_job_ready(job) for plugin in self.having("JobReady"))

    def is_job_pipelined(self, job: JobState) -> bool:
        return all(plugin.is_job_pipelined(job) for plugin in self.having("JobPipelined"))

    def is_job_starving(self, job: JobState) -> bool:
        """The first tier that has the hook on decides."""
        for plugins in self.tiers_having("JobStarving"):
            return all(plugin.is_job_starving(job) for plugin in plugins)
        return False

    @property
    def holds_minimum(self) -> bool:
        """Whether the minimum of a gang counts when its pods are placed."""
        return bool(self.having("JobReady") or self.having("JobPipelined"))

    def fault_of(self, job: JobState) -> str:
        """Why no action looks at the job; empty if they do. There is no switch for this."""
        return next((fault for plugin in self.plugins if (fault := plugin.invalid(job))), "")

    def enqueue_refusal(self, job: JobState) -> str:
        """Why the job is not admitted; empty if it is. A plugin permits, refuses or abstains. The first refusal
        decides, and no tier after one that permits is asked."""
        for plugins in self.tiers_having("JobEnqueued"):
            votes = [plugin.vote(job) for plugin in plugins]
            refusals = [vote for vote in votes if vote]
            if refusals:
                return refusals[0]
            if "" in votes:
                return ""
        return ""

    # -- queues -----------------------------------------------------------------------------------------------------

    def is_overused(self, queue: str) -> bool:
        return any(plugin.is_overused(queue) for plugin in self.having("Overused"))

    def is_allocatable(self, queue: str, amounts: Figures) -> bool:
        for plugin in self.having("Allocatable"):  # noqa: SIM110 - this is asked for every pod
            if not plugin.is_allocatable(queue, amounts):
                return False
        return True

    def may_reclaim(self, queue: str, amounts: Figures) -> bool:
        return all(plugin.may_reclaim(queue, amounts) for plugin in self.having("Preemptive"))

    def may_lose(self, queue: str) -> bool:
        """Whether any pod of the queue could be reclaimed: all plugins of one tier let go of some."""
        return any(all(plugin.may_lose(queue) for plugin in tier) for tier in self.tiers_having("Reclaimable"))

    # -- victims ----------------------------------------------------------------------------------------------------

    def preemptable(
        self, claimant: PodOfJob, candidates: Sequence[PodOfJob], without: Collection[str] = ()
    ) -> list[PodOfJob]:
        """Those that may be preempted for the claimant. `without`: plugins that are not asked."""
        tiers = self.tiers_having("Preemptable", without)
        return _agreed(tiers, lambda plugin: plugin.preemptable(claimant, candidates))

    def reclaimable(
        self, claimant: PodOfJob, candidates: Sequence[PodOfJob], without: Collection[str] = ()
    ) -> list[PodOfJob]:
        """Those that may be reclaimed for the claimant. `without`: plugins that are not asked."""
        tiers = self.tiers_having("Reclaimable", without)
        return _agreed(tiers, lambda plugin: plugin.reclaimable(claimant, candidates))

    def surely_preemptable(
        self, claimant: PodOfJob, candidates: Sequence[PodOfJob], without: Collection[str] = ()
    ) -> list[PodOfJob]:
        """The same, where it can be said of the first ones of many candidates: the others change nothing about them.
        Empty where it depends on the others."""
        tiers = self.tiers_having("Preemptable", without)[:1]
        return _agreed(tiers, lambda plugin: plugin.preemptable(claimant, candidates))

    def surely_reclaimable(
        self, claimant: PodOfJob, candidates: Sequence[PodOfJob], without: Collection[str] = ()
    ) -> list[PodOfJob]:
        """As `surely_preemptable`."""
        tiers = self.tiers_having("Reclaimable", without)[:1]
        return _agreed(tiers, lambda plugin: plugin.reclaimable(claimant, candidates))


def _agreed(tiers: Sequence[Sequence[Plugin]], named: Callable[[Plugin], list[PodOfJob]]) -> list[PodOfJob]:
    """The victims that all plugins of a tier name; the first tier that names any decides. What an earlier tier has cut
    stays cut."""
    victims: list[PodOfJob] | None = None
    for plugins in tiers:
        for plugin in plugins:
            found = named(plugin)
            if not found:
                if victims is not None:
                    victims = []
                break
            if victims is None:
                victims = found
            else:
                keys = {pod.key for pod in found}
                victims = [pod for pod in victims if pod.key in keys]
        if victims:
            return victims
    return []


def _ranks(names: Mapping[str, object] | set[str], key: Callable[[str], Key]) -> dict[str, int]:
    return {name: rank for rank, name in enumerate(sorted(names, key=key))}
