"""Says why a queue of KAI holds a workload, with the field that is the cause, and which changes may let it go.

Whether a change suffices has to be tried: other workloads may come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.engine.queues.disciplines.kai.node_pools import NodePools
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue, path_to_root
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import (
    CLAIM_OF_OTHER_QUEUE,
    NO_POOL,
    NO_QUEUE,
    OVER_LIMIT,
    OVER_QUOTA,
    QUEUE_CYCLE,
    Amounts,
    UsageOf,
)
from shoal.engine.queues.disciplines.kai.waiting_jobs import WaitingJob, reason_of
from shoal.sim.queue_corrections import choice_words
from shoal.store.held_pods import HeldPod, QueueChange
from shoal.units.near_texts import nearest_name

_QUEUES, _GROUPS = "queues.scheduling.run.ai", "podgroups.scheduling.run.ai"
_UNITS = {"gpu": 1000, "cpu": 1, "memory": 1_000_000}
"""The engine's units per unit of a queue's fields."""
_MOST_LEAVES = 3


def held_by_kai_queue(
    queues: Mapping[str, Queue], job: WaitingJob, usage_of: UsageOf, pools: NodePools | None = None
) -> HeldPod:
    """`pools`: the node pools that have a shard, where shards divide the cluster."""
    name, requested = job.queue, job.requested
    code, message = reason_of(queues, job, usage_of, pools)
    group = "" if job.is_alone else job.name
    path = path_to_root(queues, name)
    help_, changes = "", tuple[tuple[QueueChange, ...], ...]()
    queue = queues.get(name)
    of_queue = queue.node_pool(pools.label) if pools is not None and queue is not None else job.node_pool
    if pools is not None and code in (NO_POOL, NO_QUEUE) and of_queue != job.node_pool:
        help_, changes = _other_pool(job, group, of_queue, pools)
    elif code == QUEUE_CYCLE:
        help_ = "Give one queue of the cycle another parent, or none: `spec.parentQueue`."
    elif code == NO_QUEUE:
        help_, changes = _other_queue(queues, job, group)
    elif code == CLAIM_OF_OTHER_QUEUE and job.claim_of_other_queue is not None:
        help_ = _claim_help(*job.claim_of_other_queue, name)
    elif code in (OVER_LIMIT, OVER_QUOTA):
        field = "limit" if code == OVER_LIMIT else "quota"
        short = list(_shortages(path, field, requested, usage_of, is_non_preemptible=code == OVER_QUOTA))
        changes = (tuple(each.raised() for each in short),)
        if field == "limit" and any(each.requested > each.most for each in short):
            help_ = "The workload alone requests more than the limit: waiting does not help."
    return HeldPod(code, message, help_, f"KAI queue {name}", group, changes)


class _Shortage(NamedTuple):
    queue: Queue
    field: str
    resource: str
    requested: int
    used: int
    most: int

    def raised(self) -> QueueChange:
        after = math.ceil((self.used + self.requested) / _UNITS[self.resource])
        before = self.most / _UNITS[self.resource]
        return self._change(self.field, int(before) if before.is_integer() else before, after)

    def _change(self, field: str, before: float, after: float) -> QueueChange:
        return QueueChange(_QUEUES, self.queue.name, ("spec", "resources", self.resource, field), before, after)


def _shortages(
    path: Sequence[Queue], field: str, requested: Amounts, usage_of: UsageOf, *, is_non_preemptible: bool = False
) -> Iterator[_Shortage]:
    for queue in path:
        for resource in RESOURCES:
            most = queue.limit(resource) if field == "limit" else queue.quota(resource)
            used, amount = usage_of(queue.name, is_non_preemptible).get(resource, 0), requested.get(resource, 0)
            if most is not None and amount and used + amount > most:
                yield _Shortage(queue, field, resource, amount, used, most)


def _other_queue(
    queues: Mapping[str, Queue], job: WaitingJob, group: str
) -> tuple[str, tuple[tuple[QueueChange, ...], ...]]:
    """The queues that could be meant instead, the nearest first."""
    name = job.queue
    parents = {queue.spec.parent_queue for queue in queues.values()}
    leaves = {each for each in queues if each not in parents}
    if name in queues and name in parents:
        below = sorted(each for each in leaves if name in [one.name for one in path_to_root(queues, each)])
        return f"Its child queues: {', '.join(below)}.", tuple(
            _renamed(job, group, each) for each in below[:_MOST_LEAVES]
        )
    path = path_to_root(queues, name)
    if not path:
        near = nearest_name(name, leaves)
        return _capital(choice_words(leaves, near)), (_renamed(job, group, near),) if near else ()
    top = path[-1]
    others = {each for each in queues if each not in [one.name for one in path]}
    near = nearest_name(top.spec.parent_queue, others)
    words = f"Queue {top.name} names it as parentQueue; {choice_words(others, near)}"
    change = QueueChange(_QUEUES, top.name, ("spec", "parentQueue"), top.spec.parent_queue, near)
    return words, ((change,),) if near else ()


def _other_pool(
    job: WaitingJob, group: str, of_queue: str, pools: NodePools
) -> tuple[str, tuple[tuple[QueueChange, ...], ...]]:
    """The pool of the queue, if a shard decides about it and it has a name."""
    if of_queue not in pools.profiles:
        return "Create a SchedulingShard with that partitionLabelValue.", ()
    if not of_queue:
        return f"Remove the label {pools.label} from the workload.", ()
    kind, names = (_GROUPS, [group]) if group else ("pod", sorted(job.waiting))
    path = ("metadata", "labels", pools.label)
    changes = tuple(QueueChange(kind, each, path, job.node_pool, of_queue) for each in names)
    return f"Set the label {pools.label}={of_queue} on the workload.", (changes,)


def _claim_help(claim: str, names: str, queue: str) -> str:
    """What to do about a claim that names another queue, or none."""
    namespace, _, short = claim.rpartition("/")
    command = f"kubectl label resourceclaim {short} -n {namespace} {QUEUE_LABEL}={queue}"
    if names:
        return f"Submit the workload to queue '{names}', or give the claim to this queue: {command} --overwrite"
    return f"Label the claim: {command}"


def _renamed(job: WaitingJob, group: str, queue: str) -> tuple[QueueChange, ...]:
    """Where the workload names its queue: in its group, or on its pods."""
    before = job.queue
    if group:
        return (QueueChange(_GROUPS, group, ("spec", "queue"), before, queue),)
    path = ("metadata", "labels", QUEUE_LABEL)
    return tuple(QueueChange("pod", pod, path, before, queue) for pod in sorted(job.waiting))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
