"""Groups the pods of pod groups of Volcano, KAI, scheduler-plugins and Kubernetes to workloads: one for each group.

The decision is that of a live cluster (`engine/queues/pod_groups.py`). A group that cannot be queued now is a workload
with the reason, so that its pods wait and the reason is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import structs

from shoal.api.decode import Document
from shoal.api.groups.coscheduling import CoschedulingPodGroup
from shoal.api.groups.kai import KaiPodGroup
from shoal.api.groups.kubernetes import PodGroup, Workload
from shoal.api.groups.volcano import VolcanoPodGroup
from shoal.api.pod import Pod, PodTemplate
from shoal.api.wire import ApiStruct
from shoal.engine.from_api.queues import ExpectedWorkload, TemplatePods
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.pod_groups import GroupPodSet, GroupRefusal, GroupWorkload, QueuedMember, group_workload
from shoal.store.inventory import Inventory, Placed
from shoal.store.queues.group_facts import group_facts, group_workload_name, queue_group_of, ties_together
from shoal.store.queues.members import is_running
from shoal.store.queues.pod_groups import GroupedPods, age_of, runs_unadmitted, shape_of
from shoal.units.errors import UserError

_KINDS: tuple[type[ApiStruct], ...] = (VolcanoPodGroup, KaiPodGroup, PodGroup, CoschedulingPodGroup)


@dataclass(slots=True)
class OtherPodGroups:
    """Pods by group, and the objects of the groups."""

    inventory: Inventory
    _objects: dict[str, list[Document]] = field(default_factory=dict)
    _workloads: dict[str, Document] = field(default_factory=dict)
    _groups: dict[str, list[tuple[Placed[Pod], str]]] = field(default_factory=dict)
    _ended: dict[str, list[Placed[Pod]]] | None = None

    def __post_init__(self) -> None:
        for kind in _KINDS:
            for placed in self.inventory.of(kind):
                key: str = placed.value.metadata.key  # type: ignore[attr-defined]
                self._objects.setdefault(key, []).append(Document(placed.value, placed.where))
        for workload in self.inventory.of(Workload):
            self._workloads[workload.value.metadata.key] = Document(workload.value, workload.where)

    def group_of(self, placed: Placed[Pod]) -> str:
        """The group that ties the pod to others, as namespace/name; empty for a pod that is queued alone."""
        try:
            group = queue_group_of(placed.value)
        except UserError as error:
            raise placed.reported(error) from error
        return group if group and ties_together(group, self._documents(group, placed.value), placed) else ""

    def add(self, group: str, queue: str, placed: Placed[Pod]) -> None:
        self._groups.setdefault(group, []).append((placed, queue))

    def each(self, warnings: list[str]) -> Iterator[GroupedPods]:
        for group, members in self._groups.items():
            members.sort(key=lambda one: (age_of(one[0].value), one[0].value.metadata.name))
            first = members[0][0]
            if any(is_running(placed.value) for placed, _ in members):
                warnings.append(runs_unadmitted(first, group))
                continue
            grouped = self._grouped(group, members)
            if grouped.unmade.fault:
                warnings.append(f"{first.where}: {grouped.unmade.fault}")
            yield grouped

    def _grouped(self, group: str, members: list[tuple[Placed[Pod], str]]) -> GroupedPods:
        first = members[0][0]
        pods = {placed.value.metadata.name: placed for placed, _ in members}
        read = group_facts(
            group, self._documents(group, first.value), [*pods.values(), *self._ended_pods().get(group, ())]
        )
        shapes = {shape: str(index) for index, shape in enumerate(dict.fromkeys(map(_shape, pods.values())))}
        queued = [
            QueuedMember(
                placed.value.metadata.name,
                queue,
                shapes[_shape(placed)],
                read.members.get(placed.value.metadata.key, PodIdentity()),
            )
            for placed, queue in members
        ]
        found = group_workload(group, read.facts, queued)
        fault = found.message if isinstance(found, GroupRefusal) else ""
        if isinstance(found, GroupRefusal):
            found = _waiting(queued)
        oldest: dict[str, Pod] = {}
        for one in queued:
            oldest.setdefault(one.shape, pods[one.name].value)
        batches = tuple(
            TemplatePods(
                PodTemplate(oldest[each.shape].metadata, oldest[each.shape].spec),
                each.count,
                name="main" if len(oldest) == 1 else f"main-{each.shape}",
                least=found.least_of(each.shape),
                path="",
            )
            for each in found.pod_sets
        )
        name = group_workload_name(group)
        meta = structs.replace(first.value.metadata, name=name)
        unmade = ExpectedWorkload(f"{meta.namespace}/{name}", found.queue, meta, batches, fault=fault)
        return GroupedPods(unmade, first, tuple(pods[name].value.metadata.key for name in found.order))

    def _documents(self, group: str, pod: Pod) -> list[Document]:
        reference = pod.spec.workload_ref
        inside = None if reference is None else self._workloads.get(f"{pod.metadata.namespace}/{reference.name}")
        return [*self._objects.get(group, ()), *([inside] if inside is not None else [])]

    def _ended_pods(self) -> dict[str, list[Placed[Pod]]]:
        """Pods that succeeded, by group."""
        if self._ended is None:
            self._ended = {}
            for placed in self.inventory.of(Pod):
                if placed.value.has_succeeded() and (group := queue_group_of(placed.value)):
                    self._ended.setdefault(group, []).append(placed)
        return self._ended


def _shape(placed: Placed[Pod]) -> bytes:
    return shape_of(placed.value)


def _waiting(members: list[QueuedMember]) -> GroupWorkload:
    """All pods that there are, of a group that cannot be queued."""
    counts: dict[str, int] = {}
    for one in members:
        counts[one.shape] = counts.get(one.shape, 0) + 1
    pod_sets = tuple(GroupPodSet(shape, count, count) for shape, count in counts.items())
    return GroupWorkload(members[0].queue, pod_sets, tuple(one.name for one in members))
