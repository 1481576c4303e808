"""Reads KAI's queues and pod groups from the watch caches, and finds the group or queue of a pod.

The result for an object that cannot be decoded is None.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PRIORITY_CLASSES, Kind
from shoal.client.served import Served
from shoal.controllers.kai.desired_pod_group import DEFAULT_QUEUE
from shoal.engine.from_api import Priorities
from shoal.engine.groups import GroupFacts
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.disciplines.kai.admission_unit import GangSpec
from shoal.engine.queues.disciplines.kai.objects import KaiPodGroup, Queue, minimum_of, parts_of
from shoal.units.errors import UserError, Where

_KAI_PRIORITIES = Priorities()
"""The priority classes that KAI's installation creates."""


class GangSpecs:
    """`wake` is called on changes; `followed` when the API server serves one of the kinds; `known` returns the facts of
    a gang."""

    def __init__(
        self,
        context: Context,
        served: Served,
        wake: Callable[[], None],
        followed: Callable[[Kind, Informer], None],
        known: Callable[[str], GroupFacts | None],
    ) -> None:
        self._known = known
        self._context = context
        self._wake = wake
        self._on_followed = followed
        self._followed: dict[Kind, Informer] = {}
        self.queues: dict[str, Queue] = {}
        self.is_stale = True
        """Whether queues changed since the last round."""
        self._changed: dict[str, GangSpec] = {}
        self._classes = context.informers.of(PRIORITY_CLASSES)
        self._classes.on_change(lambda _, __: self._read_all_groups())
        for kind in (KAI_QUEUES, KAI_POD_GROUPS):
            served.when_there(kind, self._follow)

    @property
    def is_served(self) -> bool:
        return KAI_QUEUES in self._followed

    @property
    def is_synced(self) -> bool:
        queues = self._followed.get(KAI_QUEUES)
        return queues is not None and queues.is_synced

    async def synced(self) -> None:
        """Returns when the caches of all served kinds are synced."""
        if self._followed:
            await self._context.informers.synced(self._followed)

    def of(self, pod: str, who: PodIdentity) -> GangSpec | None:
        """None for pods that do not use a KAI queue."""
        if not self.is_served:
            return None
        group = self._group(who.group) if who.group else None
        if group is not None:
            return self._of_group(who.group, group)
        queue = dict(who.traits.labels).get(QUEUE_LABEL, "")
        if queue and who.group:
            facts = self._known(who.group)
            if facts is None or facts.unreadable:
                return GangSpec(who.group, queue, is_known=False)
            # The group belongs to another project, or its owner declares it.
            return GangSpec(who.group, queue, facts.minimum or None if not facts.parts else None)
        return GangSpec(pod, queue) if queue else None

    def take_groups(self) -> list[GangSpec]:
        """Groups that were created or changed since the last call."""
        changed, self._changed = self._changed, {}
        return list(changed.values())

    @property
    def is_settled(self) -> bool:
        return not self.is_stale and not self._changed

    # internals

    def _follow(self, kind: Kind) -> None:
        informer = self._followed[kind] = self._context.informers.of(kind)
        self._on_followed(kind, informer)
        informer.on_change(self._queue_changed if kind == KAI_QUEUES else self._group_changed)

    def _queue_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        queue = queue_of(after) if after is not None else None
        if item is None or self.queues.get(item.name) == queue:
            return
        if queue is None:
            self.queues.pop(item.name, None)
        else:
            self.queues[item.name] = queue
        self.is_stale = True
        if before is None and item.name == DEFAULT_QUEUE:
            self._read_all_groups()
        self._wake()

    def _read_all_groups(self) -> None:
        """Reads all groups again, because queues or priority classes changed."""
        for item in self._followed.get(KAI_POD_GROUPS, ()):
            self._group_changed(None, item)

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        group = group_of(after) if after is not None else None
        old = group_of(before) if before is not None else None
        is_same = old is not None and group is not None and (old.spec, old.succeeded) == (group.spec, group.succeeded)
        if after is not None and group is not None and not is_same:
            name = f"{after.namespace}/{after.name}"
            spec = self._of_group(name, group)
            if spec is not None:
                self._changed[name] = spec
                self._wake()

    def _group(self, name: str) -> KaiPodGroup | None:
        groups = self._followed.get(KAI_POD_GROUPS)
        namespace, _, rest = name.partition("/")
        item = groups.get(namespace, rest) if groups is not None else None
        return group_of(item) if item is not None else None

    def _of_group(self, name: str, group: KaiPodGroup) -> GangSpec | None:
        spec = group.spec
        if spec.queue == DEFAULT_QUEUE and DEFAULT_QUEUE not in self.queues:
            # KAI's installation creates this queue without a limit; pods that name no queue do not wait for it.
            return None
        priority = self._priority(spec.priority_class_name)
        minimum, parts = minimum_of(spec), parts_of(spec)
        if group.succeeded and minimum is not None:
            # The subgroups of the succeeded pods are unknown: a group with subgroups then needs all existing pods.
            minimum, parts = (None, ()) if parts else (max(minimum - group.succeeded, 1), ())
        return GangSpec(name, spec.queue, minimum, parts, priority, spec.is_preemptible())

    def _priority(self, name: str) -> int | None:
        item = self._classes.get("", name) if name else None
        if item is not None:
            return priority_of(item)
        try:
            return _KAI_PRIORITIES.named(name, Where()).value if name else None
        except UserError:
            return None


class PriorityClass(msgspec.Struct, frozen=True):
    value: int = 0


_queues = msgspec.json.Decoder(Queue)
_groups = msgspec.json.Decoder(KaiPodGroup)
_classes = msgspec.json.Decoder(PriorityClass)


def queue_of(item: Item) -> Queue | None:
    try:
        return _queues.decode(item.data)
    except msgspec.DecodeError:
        return None


def group_of(item: Item) -> KaiPodGroup | None:
    try:
        return _groups.decode(item.data)
    except msgspec.DecodeError:
        return None


def priority_of(item: Item) -> int | None:
    try:
        return _classes.decode(item.data).value
    except msgspec.DecodeError:
        return None
