"""Finds the reason why a unit waits, in KAI's terms: the nearest queue, from its own up, that is at its limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.api.groups.queue_parents import cycle_above, cycle_words
from shoal.engine.queues.disciplines.kai.node_pools import NodePools
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue, path_to_root

NO_QUEUE, OVER_LIMIT, OVER_QUOTA = "QueueDoesNotExist", "OverLimit", "NonPreemptibleOverQuota"
POD_SCHEDULING_ERRORS, NOT_READY = "PodSchedulingErrors", "NotReady"
NO_POOL = "NodePoolDoesNotExist"
"""A reason of Shoal: in KAI no scheduler looks at such a workload."""
QUEUE_CYCLE = "QueueCycle"
"""A reason of Shoal: KAI does not look at workloads of such queues, and says nothing."""
CLAIM_OF_OTHER_QUEUE = "ResourceClaimNotInQueue"
"""A reason of Shoal: KAI has an error of the pod's filter instead."""
_NAMES = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "memory"}

WAITING_FOR_EVICTIONS = (
    POD_SCHEDULING_ERRORS,
    "Resources were not found for it yet: other pods are being evicted for it",
)

Amounts = dict[str, int]
UsageOf = Callable[[str, bool], Amounts]
"""The usage of a queue and its descendants; if the second argument is true, only of non-preemptible units."""


def unschedulable_reason(
    queues: Mapping[str, Queue], name: str, requested: Amounts, usage_of: UsageOf, *, is_non_preemptible: bool
) -> tuple[str, str]:
    """Returns the reason and the message."""
    path = list(path_to_root(queues, name))
    if cycle := parent_cycle(queues, name):
        return QUEUE_CYCLE, f"Queue '{name}' has no top queue: the parents form the cycle {cycle_words(cycle)}"
    if not path or (path[-1].spec.parent_queue and path[-1].spec.parent_queue not in queues):
        missing = name if not path else path[-1].spec.parent_queue
        return NO_QUEUE, f"Queue '{missing}' does not exist"
    if any(queue.spec.parent_queue == name for queue in queues.values()):
        return NO_QUEUE, f"Queue '{name}' has child queues: submit the workload to one of them"
    for queue in path:
        for resource in RESOURCES:
            limit = queue.limit(resource)
            used = usage_of(queue.name, False).get(resource, 0)
            if limit is not None and requested.get(resource, 0) and used + requested[resource] > limit:
                return OVER_LIMIT, _over_message(queue.name, resource, "limit", (limit, used, requested[resource]))
    for queue in path if is_non_preemptible else ():
        for resource in RESOURCES:
            quota = queue.quota(resource)
            used = usage_of(queue.name, True).get(resource, 0)
            if quota is not None and requested.get(resource, 0) and used + requested[resource] > quota:
                message = _over_message(queue.name, resource, "quota", (quota, used, requested[resource]))
                return OVER_QUOTA, f"Non-preemptible workload is over quota. {message}"
    return (
        POD_SCHEDULING_ERRORS,
        "Resources were not found for it: nothing can be reclaimed for it, or its pods fit on no node",
    )


def parent_cycle(queues: Mapping[str, Queue], name: str) -> tuple[str, ...]:
    """The cycle in which the ancestors of a queue end; empty if they end elsewhere."""
    return cycle_above(name, lambda each: queues[each].spec.parent_queue if each in queues else "")


def pool_reason(queues: Mapping[str, Queue], pools: NodePools | None, name: str, pool: str) -> tuple[str, str] | None:
    """Why no shard decides about a workload in a queue and a node pool; None if one does, or if no shard divides the
    cluster. `pools`: those that have a shard."""
    if pools is None:
        return None
    known = sorted(pools.profiles)
    if pool not in known:
        named = ", ".join(each or "the nodes without the label" for each in known)
        what = f"has the node pool '{pool}'" if pool else "decides about nodes without the label"
        return NO_POOL, f"No SchedulingShard {what} (label {pools.label}). Node pools with one: {named}"
    queue = queues.get(name)
    of_queue = queue.node_pool(pools.label) if queue is not None else ""
    if queue is None or of_queue == pool:
        return None
    theirs = f"node pool '{of_queue}'" if of_queue else "the node pool of the nodes without the label"
    ours = f"node pool '{pool}'" if pool else "the node pool of the nodes without the label"
    return NO_QUEUE, f"Queue '{name}' is in {theirs}, and the workload in {ours} (label {pools.label})"


def claim_reason(claim: str, names: str, queue: str) -> tuple[str, str]:
    """Of a workload whose pods share a claim that does not name their queue."""
    has = f"has the label {QUEUE_LABEL}={names}" if names else f"has no label {QUEUE_LABEL}"
    words = f"ResourceClaim '{claim}' requests GPUs and {has}: only workloads of the queue that it names may use it"
    return CLAIM_OF_OTHER_QUEUE, f"{words}, and this one is in '{queue}'"


def not_ready(exist: int, needs: int) -> tuple[str, str]:
    """The reason for a group some of whose pods were not created yet."""
    return NOT_READY, f"Job is not ready for scheduling. Waiting for {needs} pods, currently {exist} existing"


def _over_message(queue: str, resource: str, what: str, amounts: tuple[int, int, int]) -> str:
    maximum, used, requested = (_shown(resource, amount) for amount in amounts)
    of = _NAMES[resource]
    if what == "limit":
        reached = f"{queue} quota has reached the allowable limit of {of}. Limit is {maximum} {of}"
        return f"{reached}, currently {used} {of} allocated and workload requested {requested} {of}"
    asks = f"Workload requested {requested} {of}, but {queue} quota is {maximum} {of}"
    return f"{asks}, while {used} {of} are already allocated for non-preemptible pods"


def _shown(resource: str, amount: int) -> str:
    return f"{amount / 1_000_000:g}" if resource == "memory" else f"{amount / 1000:g}"
