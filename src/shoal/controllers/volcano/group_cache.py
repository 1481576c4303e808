"""Reads queues, groups and pods from the watch caches, for the admission in the scheduling loop."""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PODS, Kind
from shoal.client.served import Served
from shoal.controllers.volcano.views import group_of, pod_of, queue_of
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree


class GroupCache:
    def __init__(self, context: Context, served: Served, on_change: Callable[[str], None]) -> None:
        """`on_change` is called with the name of a changed group, or with an empty string when queues changed."""
        self._informers = context.informers
        self._on_change = on_change
        self._pods = context.informers.of(PODS)
        self._followed: dict[Kind, Informer] = {}
        self._tree: QueueTree | None = None
        self.queues_of: dict[str, str] = {}
        """The last known queue of each group: its pods are charged to it for as long as they exist."""
        for kind in (VOLCANO_POD_GROUPS, VOLCANO_QUEUES):
            served.when_there(kind, self._follow)

    async def synced(self) -> None:
        for informer in list(self._followed.values()):
            await informer.synced()

    @property
    def has_groups(self) -> bool:
        """Whether the API server serves PodGroups."""
        return VOLCANO_POD_GROUPS in self._followed

    def tree(self) -> QueueTree | None:
        """None until the queues are synced."""
        queues = self._followed.get(VOLCANO_QUEUES)
        if queues is None or not queues.is_synced:
            return None
        if self._tree is None:
            self._tree = QueueTree(queue for queue in map(queue_of, queues) if queue is not None)
        return self._tree

    def group(self, name: str) -> QueuedPodGroup | None:
        namespace, _, rest = name.partition("/")
        item = self._followed[VOLCANO_POD_GROUPS].get(namespace, rest)
        return group_of(item) if item is not None else None

    def pod(self, key: str) -> GroupPod | None:
        namespace, _, name = key.partition("/")
        item = self._pods.get(namespace, name)
        return pod_of(item) if item is not None else None

    def _follow(self, kind: Kind) -> None:
        informer = self._followed[kind] = self._informers.of(kind)
        informer.on_change(self._queue_changed if kind == VOLCANO_QUEUES else self._group_changed)

    def _queue_changed(self, before: Item | None, after: Item | None) -> None:
        old, new = (queue_of(item) if item is not None else None for item in (before, after))
        if old is None or new is None or old.spec != new.spec or old.is_open != new.is_open:
            self._tree = None
            self._on_change("")

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        name, group = "/".join(item.key), group_of(after) if after is not None else None
        if group is not None:
            self.queues_of[name] = group.queue
        self._on_change(name)
