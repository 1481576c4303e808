"""Works out, from the facts of a cluster, what KAI's queues hold, request and deserve now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoal.engine.cluster import Cluster
from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob, jobs_of, sum_of
from shoal.engine.queues.disciplines.kai.fair_queues import EACH, Amounts3, FairQueue, QueueNode, QueueTree
from shoal.engine.queues.disciplines.kai.node_pools import NodePool
from shoal.engine.queues.disciplines.kai.pod_amounts import PodAmounts, total_amounts


@dataclass(frozen=True, slots=True)
class FairFacts:
    tree: QueueTree
    jobs: dict[str, FairJob]
    amounts: PodAmounts
    total: Amounts3
    """What is divided."""


def fair_facts(
    cluster: Cluster,
    queues: Sequence[FairQueue],
    k: float = 0.0,
    usage: Mapping[str, tuple[float, ...]] | None = None,
    pool: NodePool | None = None,
) -> FairFacts:
    """With the fair shares of all queues. A request is everything that is bound, runs or waits. In a node pool only its
    queues, its jobs and its nodes count."""
    if pool is not None:
        queues = [queue for queue in queues if queue.pool == pool.value]
    tree, amounts = QueueTree(queues, usage), PodAmounts(cluster)
    jobs = {job.name: job for job in jobs_of(cluster, tree, amounts, pool)}
    requested: dict[QueueNode, list[int]] = {}
    of, pods, pending = amounts.of, cluster.pods, cluster.pending
    for job in jobs.values():
        wanted = requested.setdefault(job.leaf, [0, 0, 0])
        if job.gang.running:
            held = sum_of(of(pods[pod].charge) for pod in job.active)
            charge(job, held, 1)
            for at in EACH:
                wanted[at] += held[at]
        for pod in job.gang.waiting:
            gpu, cpu, memory = of(pending[pod].charge)
            wanted[0] += gpu
            wanted[1] += cpu
            wanted[2] += memory
    for leaf, wanted in requested.items():
        for node in leaf.path:
            for at in EACH:
                node.requested[at] += wanted[at]
    total = total_amounts(cluster, amounts, pool)
    tree.divide(total, k)
    return FairFacts(tree, jobs, amounts, total)


def charge(job: FairJob, amounts: Amounts3, sign: int) -> None:
    """Add to what the queue of a job and its ancestors hold."""
    for node in job.leaf.path:
        for at in EACH:
            node.allocated[at] += sign * amounts[at]
            if not job.is_preemptible:
                node.non_preemptible[at] += sign * amounts[at]
