"""Computes the usage of nodes by pods that do not belong to queued workloads, for topology placement.

Pods of a workload whose pod set has a topology assignment are counted by that assignment, wherever they run; all other
pods on a node count as used capacity.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.resources import PODS, effective_requests
from shoal.engine.from_api.queues import queue_node_of
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.topology_facts import QueueNode
from shoal.store.inventory import Inventory
from shoal.store.queues.members import Members

POD_SET_LABEL = "kueue.x-k8s.io/podset"


def nodes_with_non_tas_usage(
    inventory: Inventory, members: Members, workloads: Mapping[str, WorkloadFacts], workload_of: Mapping[str, str]
) -> list[QueueNode]:
    """`workload_of`: pod -> workload."""
    taken: dict[str, dict[str, int]] = {}
    for key, placed in members.pods.items():
        pod = placed.value
        if not pod.spec.node_name or _is_accounted(pod, workloads.get(workload_of.get(key, ""))):
            continue
        here = taken.setdefault(pod.spec.node_name, {})
        for name, amount in (*effective_requests(pod.spec).items(), (PODS, 1)):
            here[name] = here.get(name, 0) + amount
    return [queue_node_of(placed.value, taken.get(placed.value.metadata.name, {})) for placed in inventory.of(Node)]


def _is_accounted(pod: Pod, workload: WorkloadFacts | None) -> bool:
    if workload is None or workload.admission is None:
        return False
    named = pod.metadata.labels.get(POD_SET_LABEL, "")
    return any(each.topology is not None and named in {"", each.name} for each in workload.admission.pod_sets)
