"""Who is next in a line, and in which order the heads of a cycle are decided."""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.entry import CycleEntry
from shoal.engine.queues.facts import ClusterQueueFacts, WorkloadFacts
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.order import Classical
from shoal.engine.queues.pending_workloads import PendingWorkloads
from shoal.engine.queues.readiness import stamp_of
from shoal.engine.queues.state import Queues
from shoal.engine.queues.usage import LocalUsage
from shoal.engine.queues.workloads import FlavorSearchProgress, PendingWorkload, totals_of

from .answers import Answer
from .case import Candidate, Case
from .facts import queues_of
from .workloads import NOW_S, cluster_queue_of, waiting_of


def order_of_cycle(case: Case) -> Answer:
    """Heads with their borrowing levels, each of a queue of its own."""
    queues = queues_of(case)
    entries = [_entry(queues, each) for each in case.candidates]
    return {"order": [entry.waiting.key for entry in Classical(queues, entries)]}


def order_in_line(case: Case) -> Answer:
    """The workloads of the first waiting one's queue, as they come up."""
    queues = queues_of(case)
    waiting = waiting_of(case)
    if not waiting:
        return {"head": "", "order": []}
    queue = cluster_queue_of(queues, case, waiting[0])
    line = PendingWorkloads(is_strict=queue.facts.strategy == "StrictFIFO")
    for facts in waiting:
        if cluster_queue_of(queues, case, facts) is queue:
            line.add(PendingWorkload(facts, totals_of(facts), stamp_of(queues.settings, facts)))
    local_use = local_use_of(queues) if queue.facts.by_usage else None
    order = []
    while (head := line.pop(local_use)) is not None:
        line.admitted()
        order.append(head.key)
    return {"head": order[0] if order else "", "order": order}


def local_use_of(queues: Queues) -> Callable[[str], float] | None:
    """What each local queue used, where that counts."""
    usage = LocalUsage(queues.settings)
    if not usage.is_on:
        return None
    for queue in queues.local_queues.values():
        usage.weigh(queue, NOW_S)
    return lambda key: usage.of(key, NOW_S)


def _entry(queues: Queues, candidate: Candidate) -> CycleEntry:
    evicted = candidate.evicted
    facts = WorkloadFacts(
        key=candidate.name,
        priority=candidate.priority,
        created_s=NOW_S + candidate.creation_offset_seconds,
        evicted_s=None if evicted is None else NOW_S + evicted.offset_seconds,
        evicted_why="" if evicted is None else evicted.reason,
    )
    waiting = PendingWorkload(facts, (), stamp_of(queues.settings, facts))
    queue = ClusterQueue(ClusterQueueFacts(candidate.name))
    return CycleEntry(waiting, queue, Assignment([], {}, candidate.borrowing_level, FlavorSearchProgress()))
