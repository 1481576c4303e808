"""Queues and PodGroups of KAI as these controllers see them: few fields, decoded once for each version.

One whose shape cannot be read is None here.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import field

from shoal.api.groups.kai import KaiPodGroupSpec
from shoal.store.live.item import Item

RESOURCES = ("gpu", "cpu", "memory")
_UNITS = {"gpu": 1000, "cpu": 1, "memory": 1_000_000}
"""What 1 stands for: GPUs in thousandths, thousandths of cores, bytes."""
_UNLIMITED = -1.0


class Share(msgspec.Struct, rename="camel", frozen=True):
    """Who says neither quota nor limit has none of it."""

    quota: float = 0.0
    limit: float = 0.0
    over_quota_weight: float = 0.0


class Resources(msgspec.Struct, frozen=True):
    gpu: Share = Share()
    cpu: Share = Share()
    memory: Share = Share()

    def of(self, resource: str) -> Share:
        return {"gpu": self.gpu, "cpu": self.cpu, "memory": self.memory}[resource]


class QueueSpec(msgspec.Struct, rename="camel", frozen=True):
    parent_queue: str = ""
    priority: int = 100
    resources: Resources = Resources()


class Meta(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Queue(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: QueueSpec = field(default_factory=QueueSpec)

    @property
    def name(self) -> str:
        return self.metadata.name

    def quota(self, resource: str) -> int | None:
        """In the engine's units; None is without end."""
        return _amount(resource, self.spec.resources.of(resource).quota)

    def limit(self, resource: str) -> int | None:
        return _amount(resource, self.spec.resources.of(resource).limit)

    def weight(self, resource: str) -> float:
        return self.spec.resources.of(resource).over_quota_weight


class PodGroup(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: KaiPodGroupSpec = field(default_factory=KaiPodGroupSpec)

    @property
    def minimum(self) -> int | None:
        """Pods that go together; None: all that there are, since its parts have minima of their own."""
        return None if self.spec.sub_groups else max(self.spec.min_member or 0, 1)


_queues = msgspec.json.Decoder(Queue)
_groups = msgspec.json.Decoder(PodGroup)


def queue_of(item: Item) -> Queue | None:
    try:
        return _queues.decode(item.data)
    except msgspec.DecodeError:
        return None


def group_of(item: Item) -> PodGroup | None:
    try:
        return _groups.decode(item.data)
    except msgspec.DecodeError:
        return None


def _amount(resource: str, said: float) -> int | None:
    return None if said == _UNLIMITED else max(0, round(said * _UNITS[resource]))
