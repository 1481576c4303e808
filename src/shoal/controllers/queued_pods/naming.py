"""The Workload that a queued pod belongs to: its name alone says it, so that nothing has to be remembered.

A pod by itself has its own, a pod group that of its name, a replica of a stateful set or of a leader with workers that
of its owner.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Literal

from shoal.controllers.queued_pods.pod_sight import QueuedPod
from shoal.controllers.queued_pods.words import GROUP_LABEL, LWS_GROUP, LWS_NAME
from shoal.store.live.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.store.live.kind import PODS, STATEFUL_SETS, Kind

_LONGEST = 253
_HASHED = 5
Unit = Literal["pod", "group", "parent"]


def workload_name(kind: Kind, name: str, uid: str) -> str:
    """`<kind>-<name>-<5 hex digits>`, as Kueue makes it of an owner."""
    text = f"{kind.name}\n{kind.group}\n{name}\n{uid}"
    end = f"-{sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASHED]}"
    return f"{kind.name.lower()}-{name}"[: _LONGEST - len(end)].rstrip("-.") + end


def unit_of(pod: QueuedPod) -> tuple[Unit, str]:
    """What kind of unit it is part of, and the name of its Workload."""
    meta = pod.metadata
    if group := meta.labels.get(GROUP_LABEL):
        return "group", group
    owner = pod.controller()
    if pod.parent == "statefulset" and owner is not None and owner.kind == STATEFUL_SETS.name:
        return "parent", workload_name(STATEFUL_SETS, owner.name, owner.uid)
    if pod.parent == "leaderworkerset" and LWS_NAME in meta.labels:
        return "parent", replica_name(meta.labels[LWS_NAME], meta.labels.get(LWS_GROUP, "0"))
    return "pod", workload_name(PODS, meta.name, meta.uid)


def replica_name(name: str, index: str) -> str:
    """Of one replica of a LeaderWorkerSet. Its pods do not say the set's uid."""
    return workload_name(LEADER_WORKER_SETS, f"{name}-{index}", "")
