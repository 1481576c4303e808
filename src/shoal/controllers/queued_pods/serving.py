"""Kinds that keep pods running and are one workload, or several, as a whole: what they ask for, from their own spec.

A StatefulSet is one workload of all its replicas; each replica of a LeaderWorkerSet is one: the leader and its
workers, or all of one template. Their workloads are there before their pods are: nobody waits for pods that a set
makes one after the other. Pods of a Deployment or ReplicaSet are by themselves, and those sets have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from shoal.controllers.queued_pods.composing import PodSetDraft, template_of
from shoal.controllers.queued_pods.naming import replica_name, workload_name
from shoal.controllers.queued_pods.pod_sight import QueuedPod
from shoal.controllers.queued_pods.words import LWS_WORKER, QUEUE_LABEL, SET_INDEX
from shoal.controllers.queued_pods.workload_sight import WorkloadSight
from shoal.store.live.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.store.live.item import Item
from shoal.store.live.kind import STATEFUL_SETS, Kind

Obj = dict[str, Any]
PARENT_KINDS = (STATEFUL_SETS, LEADER_WORKER_SETS)
_MARK = QUEUE_LABEL.encode()
MOST_REPLICAS = 10_000
"""Of one LeaderWorkerSet. Each is a Workload of its own, and a mistyped number would stop all others."""


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


def names_of(kind: Kind, item: Item) -> Iterator[str]:
    """The Workloads that it wants, without a look at anything else."""
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
    """What to say of one that has more replicas than wait in queues; empty of all others."""
    if kind.name != LEADER_WORKER_SETS.name or _MARK not in item.data:
        return ""
    wanted = _number((item.obj().get("spec") or {}).get("replicas"), 1)
    if wanted <= MOST_REPLICAS:
        return ""
    return f"spec.replicas: {wanted} is more than the {MOST_REPLICAS} that wait in a queue: the others get no Workload"


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


def has_grown(parent: Parent, workload: WorkloadSight) -> bool:
    """More is asked for than was admitted, or than is left after some was given up."""
    wanted, given = parent.counts(), Counter(workload.counts())
    given.subtract(workload.reclaimed())
    return any(count > given[name] for name, count in wanted.items())


def role_in(names: Collection[str], pod: QueuedPod) -> str:
    """The pod set of a pod of such a kind."""
    if "leader" not in names:
        return "main"
    return "leader" if pod.metadata.labels.get(LWS_WORKER, "0") == "0" else "worker"


def _has_controller(meta: Obj) -> bool:
    return any(owner.get("controller") for owner in meta.get("ownerReferences") or ())


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
