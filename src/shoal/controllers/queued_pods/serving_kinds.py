"""Reads the pod sets of kinds that keep pods running: StatefulSets and LeaderWorkerSets.

A StatefulSet has one Workload for all replicas; each replica of a LeaderWorkerSet has one, with the leader and its
workers or with all pods of one template. These Workloads exist before the pods, because the pods are created one after
another. Pods of a Deployment or ReplicaSet are queued one by one; those kinds have no Workload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.client.item import Item
from shoal.client.kind import STATEFUL_SETS, Kind
from shoal.controllers.queued_pods.kueue_names import LWS_WORKER, QUEUE_LABEL, SET_INDEX
from shoal.controllers.queued_pods.pod_view import QueuedPod
from shoal.controllers.queued_pods.workload_drafts import PodSetDraft, template_of
from shoal.controllers.queued_pods.workload_names import replica_name, workload_name
from shoal.controllers.queued_pods.workload_view import WorkloadView

Obj = dict[str, Any]
PARENT_KINDS = (STATEFUL_SETS, LEADER_WORKER_SETS)
_MARK = QUEUE_LABEL.encode()
MOST_REPLICAS = 10_000
"""Of one LeaderWorkerSet. Each is a Workload of its own, and a mistyped number would delay all other Workloads."""


class Parent(msgspec.Struct, frozen=True, eq=False):
    kind: Kind
    obj: Obj
    pod_sets: tuple[PodSetDraft, ...]

    @property
    def meta(self) -> Obj:
        found: Obj = self.obj["metadata"]
        return found

    @property
    def labels(self) -> dict[str, str]:
        return self.meta.get("labels") or {}

    @property
    def queue(self) -> str:
        return self.labels.get(QUEUE_LABEL, "")

    def counts(self) -> dict[str, int]:
        return {one.name: one.count for one in self.pod_sets}


def workload_names_of(kind: Kind, item: Item) -> Iterator[str]:
    """The names of the Workloads of an object."""
    if _MARK not in item.data:
        return
    obj = item.obj()
    meta = obj["metadata"]
    if meta.get("deletionTimestamp") or not (meta.get("labels") or {}).get(QUEUE_LABEL) or _has_controller(meta):
        return
    spec = obj.get("spec") or {}
    if kind.name == STATEFUL_SETS.name:
        if _number(spec.get("replicas"), 1):
            yield workload_name(STATEFUL_SETS, meta["name"], meta["uid"])
        return
    for index in range(min(_number(spec.get("replicas"), 1), MOST_REPLICAS)):
        yield replica_name(meta["name"], str(index))


def excess_of(kind: Kind, item: Item) -> str:
    """Message for a LeaderWorkerSet with more replicas than are queued; empty for all others."""
    if kind.name != LEADER_WORKER_SETS.name or _MARK not in item.data:
        return ""
    wanted = _number((item.obj().get("spec") or {}).get("replicas"), 1)
    if wanted <= MOST_REPLICAS:
        return ""
    limit = f"only {MOST_REPLICAS} replicas are queued"
    return f"spec.replicas: {wanted} is too many: {limit}, the others get no Workload"


def parent_of(kind: Kind, item: Item) -> Parent:
    obj = item.obj()
    spec = obj.get("spec") or {}
    if kind.name == STATEFUL_SETS.name:
        template, count = template_of(spec.get("template") or {}), _number(spec.get("replicas"), 1)
        return Parent(kind, obj, (PodSetDraft("main", template, count, SET_INDEX),))
    both = spec.get("leaderWorkerTemplate") or {}
    size = max(_number(both.get("size"), 1), 1)
    workers = template_of(both.get("workerTemplate") or {})
    if not both.get("leaderTemplate"):
        return Parent(kind, obj, (PodSetDraft("main", workers, size, LWS_WORKER),))
    leader = PodSetDraft("leader", template_of(both["leaderTemplate"]), 1)
    if size == 1:
        return Parent(kind, obj, (leader,))
    return Parent(kind, obj, (leader, PodSetDraft("worker", workers, size - 1)))


def has_grown(parent: Parent, workload: WorkloadView) -> bool:
    """The object has more replicas than were admitted, or than are left after some were released."""
    wanted, given = parent.counts(), Counter(workload.counts())
    given.subtract(workload.reclaimed())
    return any(count > given[name] for name, count in wanted.items())


def pod_set_of(names: Collection[str], pod: QueuedPod) -> str:
    """The name of the pod set of a pod."""
    if "leader" not in names:
        return "main"
    return "leader" if pod.metadata.labels.get(LWS_WORKER, "0") == "0" else "worker"


def _has_controller(meta: Obj) -> bool:
    return any(owner.get("controller") for owner in meta.get("ownerReferences") or ())


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
