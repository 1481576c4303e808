"""Defines the labels, annotations and names that link Volcano's objects."""

from __future__ import annotations

from shoal.client.ecosystem_kinds import VOLCANO
from shoal.client.item import Key, Obj
from shoal.client.kind import Kind

COMMANDS = Kind("bus.volcano.sh", "v1alpha1", "commands", "Command")
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
BATCH = "batch.volcano.sh"

MANAGER = "vc-controller-manager"
"""The reporting component of Events about queues and jobs."""

GROUP_MIN_MEMBER = f"{VOLCANO}/group-min-member"
GROUP_PREFIX = "podgroup-"
INHERITED_PREFIX = "volcano.sh/"

TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRIES = "volcano.sh/job-retry-count"
JOB_QUEUE = "volcano.sh/queue-name"
TEMPLATE = "volcano.sh/template-uid"
NUMA_POLICY = "volcano.sh/numa-topology-policy"
OUT_OF_SYNC = "volcano.sh/out-of-sync"
"""Marks a pod that its own job deletes: the deletion is not an eviction."""
INHERITED_ANNOTATIONS = (
    "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
"""Annotations that pods inherit from their job."""


def reference(kind: Kind, key: Key, uid: str) -> Obj:
    """The reference to an object in an Event."""
    metadata = {"namespace": key[0], "name": key[1], "uid": uid}
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
