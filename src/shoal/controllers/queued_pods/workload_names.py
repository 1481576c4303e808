"""Determines the name of the Workload of a queued pod. The name follows from the pod alone.

A single pod has its own Workload, a pod group the Workload with its name, and a replica of a StatefulSet or
LeaderWorkerSet the Workload of its owner. A pod of a pod group of Volcano, KAI, scheduler-plugins or Kubernetes has the
Workload of its group if the group ties its pods together, else its own; that depends on the group, so it is found under
both names (`workload_context.py`).
"""

from __future__ import annotations

from hashlib import sha1
from typing import Literal

from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.client.kind import PODS, STATEFUL_SETS, Kind
from shoal.controllers.queued_pods.kueue_names import GROUP_LABEL, LWS_GROUP, LWS_NAME
from shoal.controllers.queued_pods.pod_view import QueuedPod

_LONGEST = 253
_HASHED = 5
OwnerType = Literal["pod", "group", "parent"]


def workload_name(kind: Kind, name: str, uid: str) -> str:
    """`<kind>-<name>-<5 hex digits>`: Kueue's name for the Workload of an owner."""
    text = f"{kind.name}\n{kind.group}\n{name}\n{uid}"
    end = f"-{sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASHED]}"
    return f"{kind.name.lower()}-{name}"[: _LONGEST - len(end)].rstrip("-.") + end


def workload_of_pod(pod: QueuedPod) -> tuple[OwnerType, str]:
    """The type of the owner of its Workload, and the name of the Workload."""
    meta = pod.metadata
    if group := meta.labels.get(GROUP_LABEL):
        return "group", group
    owner = pod.controller()
    if pod.parent == "statefulset" and owner is not None and owner.kind == STATEFUL_SETS.name:
        return "parent", workload_name(STATEFUL_SETS, owner.name, owner.uid)
    if pod.parent == "leaderworkerset" and LWS_NAME in meta.labels:
        return "parent", replica_name(meta.labels[LWS_NAME], meta.labels.get(LWS_GROUP, "0"))
    return "pod", own_workload_name(pod)


def own_workload_name(pod: QueuedPod) -> str:
    """The name of the Workload of a single pod."""
    return workload_name(PODS, pod.metadata.name, pod.uid)


def replica_name(name: str, index: str) -> str:
    """The name for one replica of a LeaderWorkerSet. Its pods do not have the uid of the set."""
    return workload_name(LEADER_WORKER_SETS, f"{name}-{index}", "")
