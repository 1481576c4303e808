"""Orders the pods of a queue that may be evicted by the `preemptionPolicy` of the queue, an extension of Shoal.

`priority`: the least important job first, as in Volcano. `FIFO`: the youngest job first, whatever its priority, so that
the jobs that came first stay. `bestFit`: the pod that suffices for the claimant alone and exceeds it least, so that as
few pods as possible go; where none suffices alone, the largest first. Whether a pod may be evicted is not decided here.
"""

from __future__ import annotations

from shoal.engine.queues.disciplines.volcano.amounts import Figures
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.queue_forest import BEST_FIT, FIFO


def policy_key(policy: str, job: JobState, pod: PodOfJob, claimant: PodOfJob) -> tuple[float, ...]:
    """Sorts pods of one queue: the first goes first. Empty for the order of jobs and pods alone."""
    if policy == FIFO:
        return -job.facts.created_s, -job.turn, -pod.since_s
    if policy == BEST_FIT:
        return best_fit_key(pod.amounts, claimant.amounts)
    return ()


def best_fit_key(amounts: Figures, asked: Figures) -> tuple[float, ...]:
    """Amounts are compared by the resource in which they cover least of the request."""
    wanted = {name: amount for name, amount in asked.items() if amount > 0}
    cover = min((amounts.get(name, 0) / amount for name, amount in wanted.items()), default=1.0)
    excess = sum(amounts.get(name, 0) / amount for name, amount in wanted.items())
    return (0.0, excess) if cover >= 1 else (1.0, -cover)
