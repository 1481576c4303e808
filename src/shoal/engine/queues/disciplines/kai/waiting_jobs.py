"""Describes a job that waits in a queue of KAI, and why: for statuses, conditions, Events and explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.engine.cluster import Cluster
from shoal.engine.gang_members import Gang
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_jobs import sum_of
from shoal.engine.queues.disciplines.kai.fair_queues import Amounts3, QueueTree
from shoal.engine.queues.disciplines.kai.node_pools import NodePools
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue
from shoal.engine.queues.disciplines.kai.pod_amounts import PodAmounts
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import (
    POD_SCHEDULING_ERRORS,
    Amounts,
    UsageOf,
    claim_reason,
    not_ready,
    pool_reason,
    unschedulable_reason,
)
from shoal.units.quantity import Quantity

_NAMES = {"gpu": "nvidia.com/gpu", "cpu": "cpu", "memory": "memory"}


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A gang with pods that wait."""

    name: str
    queue: str
    waiting: tuple[str, ...]
    requested: Amounts
    """What its next step asks for."""
    is_non_preemptible: bool
    is_ready: bool
    """Whether enough pods exist for its next step."""
    exist: int
    needs: int
    node_pool: str = ""
    claim_of_other_queue: tuple[str, str] | None = None
    """A claim on GPUs without the label of the job's queue: its namespace/name, and the queue that it names."""

    @property
    def is_alone(self) -> bool:
        """Whether it is a pod without a group."""
        return self.name in self.waiting


def waiting_job(cycle: FairshareCycle, gang: Gang) -> WaitingJob | None:
    """None for a gang of which no pod waits, and for one in no queue."""
    facts, cluster = gang.facts, cycle.cluster
    if facts is None or not facts.queue or not gang.waiting:
        return None
    job = cycle.jobs.get(gang.name)
    is_ready = bool(job.step) if job is not None else _exist(cluster, gang) >= facts.minimum
    pods = job.step if job is not None and job.step else list(gang.waiting)
    amounts = sum_of(cycle.amounts.of(cluster.pending[pod].charge) for pod in pods if pod in cluster.pending)
    members = [cluster.pending[pod] for pod in gang.waiting]
    is_preemptible = facts.is_preemptible and all(each.who.is_preemptible for each in members)
    return WaitingJob(
        gang.name,
        facts.queue,
        tuple(gang.waiting),
        by_name(amounts),
        not is_preemptible,
        is_ready,
        _exist(cluster, gang),
        facts.minimum or sum(part.minimum for part in facts.parts),
        facts.node_pool,
        cycle.claim_of_other_queue(job) if job is not None else None,
    )


def reason_of(
    queues: Mapping[str, Queue], job: WaitingJob, usage_of: UsageOf, pools: NodePools | None = None
) -> tuple[str, str]:
    """The reason and the message, in KAI's words. `pools`: those with a shard, where shards divide the cluster."""
    if not job.is_ready:
        return not_ready(job.exist, job.needs)
    nowhere = pool_reason(queues, pools, job.queue, job.node_pool)
    if nowhere is not None:
        return nowhere
    is_non_preemptible = job.is_non_preemptible
    found = unschedulable_reason(queues, job.queue, job.requested, usage_of, is_non_preemptible=is_non_preemptible)
    if found[0] == POD_SCHEDULING_ERRORS and job.claim_of_other_queue is not None:
        return claim_reason(*job.claim_of_other_queue, job.queue)
    return found


def is_promised(cluster: Cluster, gang: Gang) -> bool:
    """Whether other pods leave their places for it."""
    return any(pod in cluster.nominated for pod in gang.running)


def tree_usage(tree: QueueTree) -> UsageOf:
    """What the queues of a tree hold."""

    def of(queue: str, is_non_preemptible: bool) -> Amounts:
        node = tree.nodes.get(queue)
        if node is None:
            return {}
        return by_name(node.non_preemptible if is_non_preemptible else node.allocated)

    return of


def gang_amounts(cluster: Cluster, amounts: PodAmounts, gang: Gang) -> tuple[Amounts3, Amounts3]:
    """What a gang holds, and what it holds or waits for."""
    held = sum_of(
        amounts.of(cluster.pods[pod].charge)
        for pod in gang.running
        if pod not in cluster.terminating and pod not in cluster.nominated
    )
    promised = [amounts.of(cluster.pods[pod].charge) for pod in gang.running if pod in cluster.nominated]
    return held, sum_of([held, *promised, *(amounts.of(cluster.pending[pod].charge) for pod in gang.waiting)])


def by_name(amounts: Amounts3) -> dict[str, int]:
    return dict(zip(RESOURCES, amounts, strict=True))


def to_quantities(amounts: Amounts) -> dict[str, str]:
    """Kubernetes quantities; zero amounts are left out."""
    return {
        _NAMES[name]: str(Quantity.of(amount) if name == "memory" else Quantity.of_milli(amount))
        for name in RESOURCES
        if (amount := amounts.get(name, 0))
    }


def _exist(cluster: Cluster, gang: Gang) -> int:
    return len(gang.waiting) + sum(pod not in cluster.terminating for pod in gang.running)
