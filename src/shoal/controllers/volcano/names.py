"""The labels, annotations and words by which Volcano's objects know each other."""

from __future__ import annotations

from shoal.store.live.ecosystem_kinds import VOLCANO
from shoal.store.live.item import Key, Obj
from shoal.store.live.kind import Kind

COMMANDS = Kind("bus.volcano.sh", "v1alpha1", "commands", "Command")
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
BATCH = "batch.volcano.sh"

SCHEDULER = "volcano"
"""Who places the pods: the name in `schedulerName`, and the reporter of Events about groups."""
MANAGER = "vc-controller-manager"
"""The reporter of Events about queues and jobs."""
DEFAULT_QUEUE, ROOT_QUEUE = "default", "root"

GROUP = "scheduling.k8s.io/group-name"
GROUP_QUEUE = f"{VOLCANO}/queue-name"
GROUP_MINIMUM = f"{VOLCANO}/group-min-member"
GROUP_PREFIX = "podgroup-"
INHERITED_PREFIX = "volcano.sh/"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"

TASK = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRIES = "volcano.sh/job-retry-count"
JOB_QUEUE = "volcano.sh/queue-name"
TEMPLATE = "volcano.sh/template-uid"
NUMA_POLICY = "volcano.sh/numa-topology-policy"
OUT_OF_SYNC = "volcano.sh/out-of-sync"
"""On a pod that its own job ends: its end is no eviction."""
HANDED_ON = (
    "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
"""Annotations of a job that its pods have too."""


def reference(kind: Kind, key: Key, uid: str) -> Obj:
    """An object as Events are about it."""
    metadata = {"namespace": key[0], "name": key[1], "uid": uid}
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
