"""Says what is wrong with a queue of KAI by itself, whether or not a workload waits for it."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.groups.queue_parents import cycle_words
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import parent_cycle

_NOTHING_RUNS = "no workload of this queue runs"


def queue_fault(queues: Mapping[str, Queue], name: str) -> str:
    """Empty for a queue in order. Quotas are granted even if the parent has less: KAI never clamps them."""
    if cycle := parent_cycle(queues, name):
        return f"spec.parentQueue: the parents form the cycle {cycle_words(cycle)}: {_NOTHING_RUNS}"
    queue = queues[name]
    if not queue.spec.parent_queue:
        return ""
    parent = queues.get(queue.spec.parent_queue)
    if parent is None:
        return f"spec.parentQueue: queue '{queue.spec.parent_queue}' does not exist: {_NOTHING_RUNS}"
    for resource in RESOURCES:
        own, above = queue.quota(resource), parent.quota(resource)
        if own is not None and above is not None and own > above:
            quota, most = (each.spec.resources.of(resource).quota for each in (queue, parent))
            return (
                f"spec.resources.{resource}.quota: {quota:g} is above the {most:g} of its parent '{parent.name}': "
                f"quotas are not clamped, so the queue may get {quota:g}, but other queues may reclaim what "
                f"'{parent.name}' holds beyond {most:g}, and work that is never preempted stays within {most:g}"
            )
    return ""
