"""Finds what the pods of KAI's queues hold of a cluster, and since when, as a record of use takes it.

A pod of which no start is known is starting now, as for minimum runtimes.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.cluster import Cluster
from shoal.engine.queues.disciplines.kai.fair_queues import QueueTree
from shoal.engine.queues.disciplines.kai.pod_amounts import PodAmounts
from shoal.engine.queues.disciplines.kai.usage_record import QueueUse


def uses_of(cluster: Cluster, tree: QueueTree) -> Iterator[QueueUse]:
    """Of all pods that hold a place now."""
    amounts = PodAmounts(cluster)
    for gang in cluster.gangs:
        path = _path(tree, gang.facts.queue if gang.facts is not None else "")
        for pod in gang.running if path else ():
            allocation = cluster.pods[pod]
            if allocation.who.since_s and pod not in cluster.nominated:
                yield QueueUse(path, amounts.of(allocation.charge), allocation.who.since_s)


def use_until(cluster: Cluster, tree: QueueTree, pod: str, now_s: float) -> QueueUse | None:
    """Of a pod that ends now; None if it holds nothing of a queue."""
    allocation = cluster.pods.get(pod)
    if allocation is None or not allocation.who.since_s or pod in cluster.nominated:
        return None
    gang = cluster.gangs.find(allocation.who.group)
    path = _path(tree, gang.facts.queue if gang is not None and gang.facts is not None else "")
    if not path:
        return None
    return QueueUse(path, PodAmounts(cluster).of(allocation.charge), allocation.who.since_s, now_s)


def _path(tree: QueueTree, queue: str) -> tuple[str, ...]:
    node = tree.nodes.get(queue)
    return () if node is None else tuple(each.name for each in node.path)
