"""Finds the pod groups of queued pods: the groups of Volcano, KAI, scheduler-plugins and Kubernetes.

Kueue's own pod groups are not among them: `membership.py` has Kueue's rules for these.

Guarantees: the answer for a pod follows from the pod and the group objects alone, and every change of these wakes the
Workloads that it may affect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

import msgspec

from shoal.api.pod import Pod, WorkloadReference
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import (
    GROUP_POD_GROUPS,
    GROUP_WORKLOADS,
    KAI_POD_GROUPS,
    LIGHT_POD_GROUPS,
    VOLCANO_POD_GROUPS,
)
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PODS, Kind
from shoal.client.loop import Loop
from shoal.client.served import Served
from shoal.controllers.queued_pods.membership import Pods
from shoal.controllers.queued_pods.roles import role_of
from shoal.engine.from_api.membership import IN_ANNOTATIONS, IN_LABELS
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.pod_groups import (
    GroupRefusal,
    GroupWorkload,
    QueuedMember,
    group_workload,
    is_complete,
)
from shoal.store.gangs import unreadable_gang
from shoal.store.inventory import Placed
from shoal.store.queues.group_facts import QueuedGroupFacts, group_facts, queue_group_of, ties_together
from shoal.store.watched.pod_annotations import pod_of
from shoal.store.watched.pod_heads import head_of
from shoal.store.watched.reading import document_of
from shoal.units.errors import UserError, Where

GROUP_KINDS: dict[Kind, tuple[str, ...]] = {
    VOLCANO_POD_GROUPS: (),
    KAI_POD_GROUPS: (),
    LIGHT_POD_GROUPS: (),
    GROUP_POD_GROUPS: ("v1beta1", "v1alpha3"),
    GROUP_WORKLOADS: (),
}
"""With the older versions that are read as well."""
_MARKS = tuple(name.encode() for name in (*IN_LABELS, *IN_ANNOTATIONS, '"schedulingGroup"', '"workloadRef"'))
_INDEX = "pod-groups"
_pods_read: WeakKeyDictionary[Item, Pod] = WeakKeyDictionary()


class GroupOfPod(msgspec.Struct, frozen=True):
    """The pod group of a pod."""

    name: str = ""
    """namespace/name; empty for a pod without a group."""
    fault: str = ""
    """Why the pod cannot be in a group as it is written."""


_ALONE = GroupOfPod()


def group_of_pod(item: Item) -> GroupOfPod:
    if not any(mark in item.data for mark in _MARKS):
        return _ALONE
    try:
        return GroupOfPod(queue_group_of(_pod(item)))
    except UserError as error:
        return GroupOfPod(fault=str(error))


class PodGroups:
    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served
        self._groups: list[Informer] = []
        self._workloads: Informer | None = None
        self._pods = context.informers.of(PODS).index(_INDEX, _groups_of)
        self._tied: WeakKeyDictionary[Item, tuple[tuple[tuple[Kind, Item], ...], bool]] = WeakKeyDictionary()

    def follow(self, loop: Loop, wake: Callable[[Item], None]) -> None:
        """`wake` is called with the pods of a group that changed."""
        for kind, versions in GROUP_KINDS.items():
            others = (kind._replace(version=version) for version in versions)
            self._served.when_there(kind, lambda found: self._follow(found, loop, wake), *others)

    def _follow(self, kind: Kind, loop: Loop, wake: Callable[[Item], None]) -> None:
        informer = self._context.informers.of(kind)
        loop.need(kind)
        if kind.plural == GROUP_WORKLOADS.plural:
            self._workloads = informer
        else:
            self._groups.append(informer)

        def changed(before: Item | None, after: Item | None) -> None:
            item = after or before
            if item is not None:
                for pod in list(self._pods[f"{item.namespace}/{item.name}"]):
                    wake(pod)

        informer.on_change(changed)

    def ties(self, item: Item, group: str) -> bool:
        """Whether the group ties the pod to others; also of a group that does not exist yet."""
        objects = self._objects(group, _pod(item).spec.workload_ref)
        known = self._tied.get(item)
        if known is None or known[0] != objects:
            try:
                documents = [document_of(kind, found) for kind, found in objects]
                is_tied = ties_together(
                    group, documents, Placed(_pod(item), Where(obj=f"Pod {item.namespace}/{item.name}"))
                )
            except UserError:
                is_tied = True
            known = self._tied[item] = objects, is_tied
        return known[1]

    def workload(self, group: str, pods: Pods) -> GroupWorkload | GroupRefusal:
        """How the group is queued with these pods, which may include pods that succeeded."""
        read = self._read(group, [_pod(item) for item, _ in pods])
        members = [
            QueuedMember(
                pod.metadata.name,
                pod.queue,
                role_of(item),
                read.members.get(f"{item.namespace}/{item.name}", PodIdentity()),
                runs=pod.runs(),
            )
            for item, pod in pods
            if not pod.is_over()
        ]
        return group_workload(group, read.facts, members)

    def is_complete(self, group: str, pods: Pods) -> bool:
        """Whether as many of these pods succeeded as the gang needs."""
        facts = self._read(group, [_pod(item) for item, _ in pods]).facts
        return all(pod.status.phase == "Succeeded" for _, pod in pods) if facts is None else is_complete(facts)

    def _read(self, group: str, members: Iterable[Pod]) -> QueuedGroupFacts:
        pods = [Placed(pod, Where(obj=f"Pod {pod.metadata.key}")) for pod in members]
        reference = next((pod.value.spec.workload_ref for pod in pods), None)
        try:
            documents = [document_of(kind, item) for kind, item in self._objects(group, reference)]
        except UserError as error:
            return QueuedGroupFacts(unreadable_gang(group, error), {})
        return group_facts(group, documents, pods)

    def _objects(self, group: str, reference: WorkloadReference | None) -> tuple[tuple[Kind, Item], ...]:
        namespace, _, name = group.partition("/")
        found = [(informer.kind, informer.get(namespace, name)) for informer in self._groups]
        if reference is not None and self._workloads is not None:
            found.append((self._workloads.kind, self._workloads.get(namespace, reference.name)))
        return tuple((kind, item) for kind, item in found if item is not None)


def _pod(item: Item) -> Pod:
    """The parts of the pod from which its group is read."""
    found = _pods_read.get(item)
    if found is None:
        found = _pods_read[item] = pod_of(item, head_of(item))
    return found


def _groups_of(item: Item) -> list[str]:
    """The group of a pod, and the object that has the group inside."""
    group = group_of_pod(item).name
    return list(dict.fromkeys((group, "/".join(group.split("/", 2)[:2])))) if group else []
