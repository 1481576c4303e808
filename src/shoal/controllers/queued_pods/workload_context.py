"""Collects all objects that belong to one Workload of queued pods, from the caches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from shoal.client.context import Context
from shoal.client.item import Item, Key
from shoal.client.kind import PODS, Kind
from shoal.client.served import Served
from shoal.controllers.queued_pods.kueue_names import IS_GROUP
from shoal.controllers.queued_pods.membership import Pods
from shoal.controllers.queued_pods.pod_groups import PodGroups, group_of_pod
from shoal.controllers.queued_pods.pod_view import QueuedPod, queued_pod
from shoal.controllers.queued_pods.pods_of_jobs import JobQueueing, PodsOfJobs
from shoal.controllers.queued_pods.serving_kinds import PARENT_KINDS, Parent, parent_of, workload_names_of
from shoal.controllers.queued_pods.workload_names import OwnerType, own_workload_name, workload_of_pod
from shoal.controllers.queued_pods.workload_view import WorkloadView, workload_view
from shoal.controllers.queued_work.kueue_names import REPLACES, SLICE_NAME
from shoal.store.queues.group_facts import group_workload_name

_INDEX = "queued"
_SLICE = SLICE_NAME.encode()


class WorkloadContext(msgspec.Struct, frozen=True, eq=False):
    key: Key
    owner_type: OwnerType
    pods: Pods
    """Oldest first."""
    parent: Parent | None
    item: Item | None
    """The Workload."""
    workload: WorkloadView | None
    older: tuple[Item, ...] = ()
    """Workloads of the same owner that it replaced."""
    newer: tuple[Item, ...] = ()
    """Workloads of the same owner that are to replace it."""
    group: str = ""
    """The pod group of the pods as namespace/name; empty for Kueue's own pod groups and all other pods."""


class WorkloadContexts:
    """Finds the context by the Workload's name, from indexes of pods and their owners."""

    def __init__(self, context: Context, served: Served, workloads: Kind, groups: PodGroups, jobs: PodsOfJobs) -> None:
        self._context = context
        self._served = served
        self._groups = groups
        self._jobs = jobs
        self._workloads = context.informers.of(workloads)
        self._by_slice = self._workloads.index("slices", _slice_keys)
        self._pods = context.informers.of(PODS).index(_INDEX, _keys_of_pod)

    def of(self, key: Key) -> WorkloadContext | None:
        """None if no queued object has a Workload of that name."""
        value = "/".join(key)
        older, item, newer = self._slices(key)
        workload = workload_view(item) if item is not None else None
        pods, group = self._pods_of(key)
        parent = self._parent(value)
        owner_type: OwnerType | None = "group" if group else _owner_type(pods, parent, workload)
        if owner_type is None:
            return None
        return WorkloadContext(key, owner_type, pods, parent, item, workload, older, newer, group)

    def _pods_of(self, key: Key) -> tuple[Pods, str]:
        """The pods that belong to the Workload, oldest first, and their pod group."""
        pods, groups = [], set[str]()
        for item in self._pods["/".join(key)]:
            pod = queued_pod(item)
            if pod is None or self._jobs.queueing(item, pod) is not JobQueueing.NONE:
                continue
            group = _pod_group(item, pod)
            if group:
                is_group_key = group_workload_name(group) == key[1]
                if is_group_key == self._is_alone(item, pod, group):
                    continue
                group = group if is_group_key else ""
            groups.add(group)
            pods.append((item, pod))
        # Pods that Kueue's label puts into a group of the same name follow Kueue's rules, and the others with them.
        return sorted(pods, key=lambda one: one[1].age()), "" if "" in groups else next(iter(groups), "")

    def pods_of_jobs(self, key: Key) -> tuple[list[QueuedPod], bool]:
        """Held pods whose job is queued itself; and whether there are some of which that is not known yet."""
        found, is_unknown = [], False
        for item in self._pods["/".join(key)]:
            pod = queued_pod(item)
            queueing = self._jobs.queueing(item, pod) if pod is not None else JobQueueing.NONE
            is_unknown = is_unknown or queueing is JobQueueing.UNKNOWN
            if pod is not None and queueing is JobQueueing.QUEUED:
                found.append(pod)
        return found, is_unknown

    def keys_of_pods_elsewhere(self, key: Key) -> list[Key]:
        """The keys of other Workloads of pods that might belong to this one."""
        return [other for item in self._pods["/".join(key)] for other in keys_of_pod(item) if other != key]

    def _is_alone(self, item: Item, pod: QueuedPod, group: str) -> bool:
        """Whether a pod of a group has a Workload of its own: its group ties it to no other pod, or it was admitted
        alone before it was in a group. The Workload under which a pod runs is kept."""
        if self._holds_quota(item.namespace, own_workload_name(pod)):
            return True
        if self._holds_quota(item.namespace, group_workload_name(group)):
            return False
        return not self._groups.ties(item, group)

    def _holds_quota(self, namespace: str, name: str) -> bool:
        item = self._slices((namespace, name))[1]
        view = workload_view(item) if item is not None else None
        return view is not None and view.is_true("QuotaReserved") and not view.is_true("Finished")

    def _slices(self, key: Key) -> tuple[tuple[Item, ...], Item | None, tuple[Item, ...]]:
        """The Workload that counts, with older and newer ones of the same owner."""
        first = self._workloads.get(*key)
        later = [one for one in self._by_slice["/".join(key)] if one is not first]
        if not later:
            return (), first, ()
        there = in_order([first, *later] if first is not None else later)
        seen = [workload_view(one) for one in there]
        live = [at for at, one in enumerate(seen) if not one.is_true("Finished")]
        admitted = [at for at in live if seen[at].is_true("Admitted")]
        reserved = [at for at in live if seen[at].is_true("QuotaReserved")]
        at = (admitted or reserved or live or [len(there) - 1])[-1]
        return tuple(there[:at]), there[at], tuple(there[at + 1 :])

    def keys_of_workload(self, item: Item) -> list[Key]:
        """Later Workloads of an owner are reconciled with its first one."""
        first = workload_view(item).metadata.annotations.get(SLICE_NAME) if _SLICE in item.data else None
        return [(item.namespace, first or item.name)]

    def keys_of_parent(self, kind: Kind, item: Item) -> list[Key]:
        return [(item.namespace, name) for name in workload_names_of(kind, item)]

    def _parent(self, value: str) -> Parent | None:
        for kind in PARENT_KINDS:
            found = self._served.find(kind) if kind.group != "apps" else kind
            if found is None:
                continue
            informer = self._context.informers.of(found)
            for item in informer.index(_INDEX, _Names(found))[value]:
                return parent_of(found, item)
        return None


class _Names:
    """Computes the index values of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def __call__(self, item: Item) -> Iterator[str]:
        return (f"{item.namespace}/{name}" for name in workload_names_of(self._kind, item))


def in_order(workloads: Iterable[Item]) -> list[Item]:
    """Each Workload after the one that it replaces."""
    there = {f"{one.namespace}/{one.name}": one for one in workloads}

    def depth(item: Item | None) -> int:
        found, seen = 0, set[str]()
        while item is not None:
            before = workload_view(item).metadata.annotations.get(REPLACES, "")
            if before not in there or before in seen:
                break
            seen.add(before)
            item, found = there[before], found + 1
        return found

    return sorted(there.values(), key=lambda one: (depth(one), one.name))


def _slice_keys(item: Item) -> list[str]:
    first = workload_view(item).metadata.annotations.get(SLICE_NAME) if _SLICE in item.data else None
    return [f"{item.namespace}/{first}"] if first else []


def keys_of_pod(item: Item) -> list[Key]:
    """A pod of a pod group may have the Workload of its group or its own."""
    pod = queued_pod(item)
    if pod is None:
        return []
    group = _pod_group(item, pod)
    names = [group_workload_name(group), own_workload_name(pod)] if group else [workload_of_pod(pod)[1]]
    return [(item.namespace, name) for name in names]


def _pod_group(item: Item, pod: QueuedPod) -> str:
    """The pod group with which the pod may be queued: not where its owner is queued as a whole."""
    return group_of_pod(item).name if workload_of_pod(pod)[0] == "pod" else ""


def _keys_of_pod(item: Item) -> list[str]:
    return ["/".join(key) for key in keys_of_pod(item)]


def _owner_type(pods: Pods, parent: Parent | None, workload: WorkloadView | None) -> OwnerType | None:
    if parent is not None:
        return "parent"
    if pods:
        return workload_of_pod(pods[0][1])[0]
    if workload is None:
        return None
    if workload.metadata.annotations.get(IS_GROUP) == "true":
        return "group"
    if workload.owners("Pod"):
        return "pod"
    return "parent" if any(workload.owners(kind.name) for kind in PARENT_KINDS) else None
