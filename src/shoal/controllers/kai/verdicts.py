"""Why work waits, in KAI's reasons: the nearest queue, from its own up, whose quota or limit it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.controllers.kai.sights import RESOURCES, Queue, path_up
from shoal.engine.queues.facts import Amounts

NO_QUEUE, OVER_LIMIT, OVER_QUOTA = "QueueDoesNotExist", "OverLimit", "NonPreemptibleOverQuota"
NO_ROOM, NOT_READY = "PodSchedulingErrors", "NotReady"
_NAMES = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "memory"}

OTHERS_END = (NO_ROOM, "Resources were not found for it yet: others end to make room for it")

Held = Callable[[str, bool], Amounts]
"""What is held below a queue; of work that is never ended alone, where the second is true."""


def verdict(queues: Mapping[str, Queue], name: str, asked: Amounts, held: Held, *, is_fixed: bool) -> tuple[str, str]:
    """Reason and message."""
    path = list(path_up(queues, name))
    if not path or (path[-1].spec.parent_queue and path[-1].spec.parent_queue not in queues):
        missing = name if not path else path[-1].spec.parent_queue
        return NO_QUEUE, f"Queue '{missing}' does not exist"
    if any(queue.spec.parent_queue == name for queue in queues.values()):
        return NO_QUEUE, f"Queue '{name}' has queues below it: work belongs into one of those"
    for queue in path:
        for resource in RESOURCES:
            limit = queue.limit(resource)
            used = held(queue.name, False).get(resource, 0)
            if limit is not None and asked.get(resource, 0) and used + asked[resource] > limit:
                return OVER_LIMIT, _over(queue.name, resource, "limit", (limit, used, asked[resource]))
    for queue in path if is_fixed else ():
        for resource in RESOURCES:
            quota = queue.quota(resource)
            used = held(queue.name, True).get(resource, 0)
            if quota is not None and asked.get(resource, 0) and used + asked[resource] > quota:
                words = _over(queue.name, resource, "quota", (quota, used, asked[resource]))
                return OVER_QUOTA, f"Non-preemptible workload is over quota. {words}"
    return NO_ROOM, "Resources were not found for it: no queue has to give back enough, or its pods fit on no nodes"


def not_whole(exist: int, needs: int) -> tuple[str, str]:
    """Of a group some of whose pods have not come yet."""
    return NOT_READY, f"Job is not ready for scheduling. Waiting for {needs} pods, currently {exist} existing"


def _over(queue: str, resource: str, what: str, amounts: tuple[int, int, int]) -> str:
    most, used, asked = (_shown(resource, amount) for amount in amounts)
    of = _NAMES[resource]
    if what == "limit":
        reached = f"{queue} quota has reached the allowable limit of {of}. Limit is {most} {of}"
        return f"{reached}, currently {used} {of} allocated and workload requested {asked} {of}"
    asks = f"Workload requested {asked} {of}, but {queue} quota is {most} {of}"
    return f"{asks}, while {used} {of} are already allocated for non-preemptible pods"


def _shown(resource: str, amount: int) -> str:
    return f"{amount / 1_000_000:g}" if resource == "memory" else f"{amount / 1000:g}"
