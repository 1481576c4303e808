"""Manifests of Kueue's kinds in few words, and the world of queues that they make."""

from __future__ import annotations

import json
from typing import Any

from build.manifests import Object, pod, thing
from shoal.api.decode import read
from shoal.engine.queues.facts import WorkloadFacts
from shoal.store.inventory import Inventory
from shoal.store.queues import ManifestQueues, read_queue_manifests

KUEUE = "kueue.x-k8s.io/v1beta2"
CONFIG = "config.kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
IN_Q = {QUEUE: "q"}
IN_GROUP = {"kueue.x-k8s.io/pod-group-name": "g", **IN_Q}
TOTAL = "kueue.x-k8s.io/pod-group-total-count"


def flavor(name: str = "f", **spec: Any) -> Object:
    return thing(KUEUE, "ResourceFlavor", name, spec=spec)


def cluster_queue(name: str = "cq", flavors: tuple[str, ...] = ("f",), *resources: str, **spec: Any) -> Object:
    """Ten of each resource in each flavor; every namespace may use it."""
    covered = list(resources) or ["cpu"]
    quotas = [{"name": each, "nominalQuota": 10} for each in covered]
    group = {"coveredResources": covered, "flavors": [{"name": each, "resources": quotas} for each in flavors]}
    return thing(KUEUE, "ClusterQueue", name, spec={"resourceGroups": [group], "namespaceSelector": {}, **spec})


def local_queue(name: str = "t/q", cluster: str = "cq", **more: Any) -> Object:
    return thing(KUEUE, "LocalQueue", name, spec={"clusterQueue": cluster}, **more)


def queues() -> list[Object]:
    """A flavor, a cluster queue and the local queue t/q."""
    return [flavor(), cluster_queue(), local_queue()]


def workload(name: str = "t/w", status: Object | None = None, meta: Object | None = None, **spec: Any) -> Object:
    pod_set = {"name": "main", "count": 1, "template": {"spec": pod("t/p", limits={"cpu": 1})["spec"]}}
    made = thing(KUEUE, "Workload", name, spec={"queueName": "q", "podSets": [pod_set], **spec})
    made["metadata"] |= meta or {}
    if status is not None:
        made["status"] = status
    return made


def pod_set(count: int = 1, name: str = "main", cpu: int | str = 1, **more: Any) -> Object:
    return {"name": name, "count": count, "template": {"spec": pod("t/p", limits={"cpu": cpu})["spec"]}, **more}


def condition(kind: str, status: str = "True", at: str = "2026-01-01T00:00:00Z", reason: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": at}


def admission(count: int = 1, cpu: int = 1, topology: Object | None = None) -> Object:
    """Of the pod set main, in cluster queue cq and flavor f; `cpu` is the total."""
    assigned: Object = {"name": "main", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}, "count": count}
    if topology is not None:
        assigned["topologyAssignment"] = topology
    return {"clusterQueue": "cq", "podSetAssignments": [assigned]}


def configuration(**fields: Any) -> Object:
    return {"apiVersion": CONFIG, "kind": "Configuration", "metadata": {"name": "config"}, **fields}


def world(*objects: Object) -> ManifestQueues:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return read_queue_manifests(Inventory(read(text, "w.json")))


def workloads(*objects: Object) -> dict[str, WorkloadFacts]:
    """By key, beside the flavor and queues of `queues()`."""
    return {facts.key: facts for facts in world(*queues(), *objects).workloads}


def only(*objects: Object) -> WorkloadFacts:
    (facts,) = workloads(*objects).values()
    return facts


def owned_by(kind: str, name: str) -> Object:
    """Metadata of what a controller made."""
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": "u", "controller": True}]}


def sizes(facts: WorkloadFacts) -> dict[str, int]:
    return {each.name: each.count for each in facts.pod_sets}
