"""Orders the preemptors as the cycle orders pending pods, without those that may not preempt.

A pod that never preempts may be followed by one with the same request that does, so a group is searched beyond its
head.
A failure holds for all behind it in its queue: their priority is not higher, so they have no more candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from shoal.engine.cluster import Cluster
from shoal.engine.gang_members import Gang
from shoal.engine.pending import EquivalenceKey
from shoal.engine.preemption.preemptor import Preemptor, gang_preemptor, pod_preemptor
from shoal.engine.scheduling_queue import gang_order

Ask = Callable[[Preemptor], bool]


def preemptors_in_order(cluster: Cluster, ask: Ask, *, may_ask: Ask) -> None:
    """Try all waiting pods that may preempt, in order."""
    pending = cluster.pending
    heap: list[tuple[int, int, str, EquivalenceKey | Gang]] = []
    behind: dict[EquivalenceKey, Iterator[str]] = {}

    def push_first(at: EquivalenceKey) -> None:
        head = pending.head(at)
        if head is None:
            return
        first = head[2]
        if not may_ask(pod_preemptor(cluster, first)):
            # The head stays where it is, so the group is walked once, however many pods behind it are placed.
            if at not in behind:
                behind[at] = iter(pending.equivalent_pods(at))
            first = next((pod for pod in behind[at] if pod in pending and may_ask(pod_preemptor(cluster, pod))), "")
        if first:
            heappush(heap, (*pending[first].order, first, at))

    pending.note_nodes(cluster.static_changes.end)
    for *_, at in pending.heads():
        push_first(at)
    for gang in cluster.gangs:
        if gang.waiting:
            heappush(heap, (*gang_order(cluster, gang), gang.name, gang))
    while heap:
        _, _, name, what = heappop(heap)
        if not isinstance(what, Gang):
            if ask(pod_preemptor(cluster, name)):
                push_first(what)
            continue
        claim = gang_preemptor(cluster, what)
        if claim is not None and may_ask(claim) and ask(claim) and what.waiting:
            heappush(heap, (*gang_order(cluster, what), name, what))
