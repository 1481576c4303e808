"""The queues of the demonstration: two teams share the GPUs, each with a quota, and borrow what the other leaves.

`serving` has no queue: its replicas start at once, on the GPUs that no quota promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS
from shoal.client.kind import Kind

Obj = dict[str, Any]
QUOTAS: Mapping[str, int] = {"pretrain": 64, "vision": 48}
"""GPUs by team."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_COHORT, _FLAVOR = "research", "gpu-nodes"
_CORES, _MEMORY = "100k", "1Pi"
"""More than the fleet has: GPUs alone decide."""


def queue_objects() -> Iterator[tuple[Kind, Obj]]:
    """In the order in which they are created; a LocalQueue has the name of its team and is in its namespace."""
    yield RESOURCE_FLAVORS, {"metadata": {"name": _FLAVOR}, "spec": {}}
    for team, gpus in QUOTAS.items():
        yield CLUSTER_QUEUES, _cluster_queue(team, gpus)
        yield LOCAL_QUEUES, {"metadata": {"name": team, "namespace": team}, "spec": {"clusterQueue": team}}


def _cluster_queue(team: str, gpus: int) -> Obj:
    quotas = {"nvidia.com/gpu": str(gpus), "cpu": _CORES, "memory": _MEMORY}
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    return {
        "metadata": {"name": team},
        "spec": {
            "cohortName": _COHORT,
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any"},
            "resourceGroups": [
                {"coveredResources": list(quotas), "flavors": [{"name": _FLAVOR, "resources": resources}]}
            ],
        },
    }
