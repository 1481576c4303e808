"""What work in storms stands on: queues with quota, priorities, and cards that are asked for by claims."""

from __future__ import annotations

from collections.abc import Sequence

from build.small_clusters import SmallCluster
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES
from shoal.client.item import Obj
from shoal.client.kind import DEVICE_CLASSES, PRIORITY_CLASSES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES

QUEUE, RANK = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
GROUP, TOTAL = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
LIGHT_GROUP = "scheduling.x-k8s.io/pod-group"
GPU_FAULTS = "shoal.dev/gpu-faults"
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
NOMINAL = {"cpu": 12, GPU: 4, MIG: 4}
QUEUES = ("one", "two")
CARD = "card"


async def furnish(cluster: SmallCluster) -> None:
    await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "default"}, "spec": {}})
    for name in QUEUES:
        preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        spec = {"cohortName": "all", "namespaceSelector": {}, "preemption": preemption, **groups(NOMINAL)}
        await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": spec})
        await cluster.create(LOCAL_QUEUES, {"metadata": {"name": name}, "spec": {"clusterQueue": name}})
    for name, value in (("low", 1), ("high", 1000)):
        await cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})


async def furnish_widely(cluster: SmallCluster, nodes: Sequence[str]) -> None:
    """Cards that are asked for by claims, two on each node."""
    await cluster.create(DEVICE_CLASSES, {"metadata": {"name": CARD}, "spec": {}})
    request = {"name": "one", "exactly": {"deviceClassName": CARD}}
    template = {"metadata": {"name": CARD}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, template)
    for node in nodes:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"card-{at}"} for at in range(2)]
        spec = {"driver": "cards.test", "nodeName": node, "pool": pool, "devices": devices}
        await cluster.create(RESOURCE_SLICES, {"metadata": {"name": f"{node}-cards"}, "spec": spec})


def groups(amounts: dict[str, int], **limits: str) -> Obj:
    resources = [{"name": name, "nominalQuota": str(amount), **limits} for name, amount in amounts.items()]
    return {
        "resourceGroups": [
            {"coveredResources": list(amounts), "flavors": [{"name": "default", "resources": resources}]}
        ]
    }
