"""Defines KAI's queues and PodGroups as the rules read them: few fields of each object."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import field

from shoal.api.groups.kai import KaiPodGroupSpec
from shoal.api.kueue.durations import seconds
from shoal.api.meta import ObjectMeta
from shoal.units.errors import UserError, Where

RESOURCES = ("gpu", "cpu", "memory")
_UNITS = {"gpu": 1000, "cpu": 1, "memory": 1_000_000}
"""The engine's units per KAI unit: thousandths of a GPU, thousandths of a core, bytes."""
_UNLIMITED = -1.0

FIRST_NON_PREEMPTIBLE_PRIORITY = 100
"""KAI's lowest priority of work that is not preemptible."""


class QueueResourceShare(msgspec.Struct, rename="camel", frozen=True):
    """A queue without quota and limit has none of the resource."""

    quota: float = 0.0
    limit: float = 0.0
    over_quota_weight: float = 0.0


class QueueResources(msgspec.Struct, frozen=True):
    gpu: QueueResourceShare = QueueResourceShare()
    cpu: QueueResourceShare = QueueResourceShare()
    memory: QueueResourceShare = QueueResourceShare()

    def of(self, resource: str) -> QueueResourceShare:
        return {"gpu": self.gpu, "cpu": self.cpu, "memory": self.memory}[resource]


class QueueSpec(msgspec.Struct, rename="camel", frozen=True):
    display_name: str = ""
    parent_queue: str = ""
    priority: int = 100
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    resources: QueueResources = QueueResources()


class Queue(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: QueueSpec = field(default_factory=QueueSpec)

    @property
    def name(self) -> str:
        return self.metadata.name

    def node_pool(self, label: str) -> str:
        """The one that its label names."""
        return self.metadata.labels.get(label, "")

    def quota(self, resource: str) -> int | None:
        """In the engine's units; None is unlimited."""
        return _amount(resource, self.spec.resources.of(resource).quota)

    def limit(self, resource: str) -> int | None:
        return _amount(resource, self.spec.resources.of(resource).limit)

    def weight(self, resource: str) -> float:
        return self.spec.resources.of(resource).over_quota_weight

    @property
    def preempt_min_runtime_s(self) -> float | None:
        """How long a unit runs before others of the queue may preempt it; None if not set."""
        return _duration_s(self.spec.preempt_min_runtime)

    @property
    def reclaim_min_runtime_s(self) -> float | None:
        """How long a unit runs before another queue may reclaim from it; None if not set."""
        return _duration_s(self.spec.reclaim_min_runtime)


def path_to_root(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    """The queue and its ancestors, each once, even if the parents form a cycle."""
    found: list[Queue] = []
    queue = queues.get(name)
    while queue is not None and queue not in found:
        found.append(queue)
        queue = queues.get(queue.spec.parent_queue)
    return found


class GroupStatus(msgspec.Struct, frozen=True):
    succeeded: int | None = None


class KaiPodGroup(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: KaiPodGroupSpec = field(default_factory=KaiPodGroupSpec)
    status: GroupStatus | None = None

    @property
    def succeeded(self) -> int:
        """The number of succeeded pods: the group needs fewer pods by that number."""
        return (self.status.succeeded or 0) if self.status is not None else 0


def minimum_of(spec: KaiPodGroupSpec) -> int | None:
    """The number of pods that start together; None: all existing pods, because not all subgroups are needed."""
    if not spec.sub_groups:
        return max(spec.min_member or 0, 1)
    return sum(minimum for _, minimum in parts_of(spec)) or None


def parts_of(spec: KaiPodGroupSpec) -> tuple[tuple[str, int], ...]:
    """The leaf subgroups and their minimums, if all subgroups are needed; else empty."""
    parts = spec.sub_groups
    inner = {part.parent for part in parts}
    if spec.min_sub_group not in (None, len(spec.children())):
        return ()
    if any(part.min_sub_group not in (None, len(spec.children(part.name))) for part in parts):
        return ()
    leaves = [part for part in parts if part.name not in inner]
    return tuple((part.name, 1 if part.min_member is None else part.min_member) for part in leaves)


def _duration_s(text: str | None) -> float | None:
    try:
        return seconds(text, Where()) if text else None
    except UserError:
        # The API server validates the pattern; without that validation, the value counts as not set.
        return None


def _amount(resource: str, value: float) -> int | None:
    return None if value == _UNLIMITED else max(0, round(value * _UNITS[resource]))
