"""Protects workloads that Kueue would preempt, and prefers victims that lose least: off unless configured.

A workload that started recently, or whose preemption alone would violate a disruption budget, is excluded. `budgets`
counts what several victims together use of a budget. Among workloads of equal priority, the one that loses the fewest
GPU-seconds since its last checkpoint is preempted first.

Rejected: weighing lost work against priority. A priority that a user sets is followed.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.settings import Settings

_MILLI = "gpu-milli"


@dataclass(frozen=True, slots=True)
class PreemptionCost:
    """The settings at one moment."""

    settings: Settings
    now_s: float

    @classmethod
    def of(cls, settings: Settings, now_s: float) -> PreemptionCost | None:
        """None where nothing is configured, which is Kueue's way."""
        wanted = settings.lost_work or settings.min_runtime_s > 0 or settings.respect_budgets
        return cls(settings, now_s) if wanted else None

    def spares(self, held: AdmittedWorkload, asking: ClusterQueue) -> bool:
        """Whether it must not be asked by that queue; who is stopping already has nothing to lose."""
        if held.evicted:
            return False
        if self.settings.respect_budgets and held.facts.shielded:
            return True
        least_s = max(self.settings.min_runtime_s, _least_s(held.queue, asking))
        return held.facts.admitted and self.now_s - held.facts.admitted_s < least_s

    def loss(self, held: AdmittedWorkload) -> float:
        """The GPU-seconds that are lost."""
        if not self.settings.lost_work:
            return 0.0
        facts = held.facts
        since_s = facts.admitted_s if facts.admitted else facts.reserved_s
        if facts.saved_s is not None:
            since_s = max(since_s, facts.saved_s)
        return max(0.0, self.now_s - since_s) * gpus_of(held)


def least_run_times(queue: ClusterQueue) -> set[float]:
    """All that the queue's own rules know."""
    rules = queue.facts.preemption
    return {rules.own_least_s, *rules.others_least_s}


def _least_s(queue: ClusterQueue, asking: ClusterQueue) -> float:
    rules = queue.facts.preemption
    if queue is asking:
        return rules.own_least_s
    if not rules.others_least_s:
        return 0.0
    above = list(asking.path_up())
    between = sum(1 for cohort in queue.path_up() if cohort not in above)
    return rules.others_least_s[min(between, len(rules.others_least_s) - 1)]


def gpus_of(held: AdmittedWorkload) -> float:
    """GPUs and instances that it holds; what asks for none counts as one, so that age still tells."""
    whole = milli = 0
    for (_, resource), amount in held.usage.items():
        name = resource.rpartition("/")[2]
        if name == _MILLI:
            milli += amount
        elif name == "gpu" or name.startswith(("gpu.", "mig-")):
            whole += amount
    return milli / 1000 or whole or 1
