"""Reads queues, groups, and pods without a group from the watch caches, as the scheduling loop needs them."""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PODS, Kind
from shoal.client.served import Served
from shoal.controllers.volcano.views import group_of, pod_of, queue_of
from shoal.engine.queues.disciplines.volcano.known_jobs import KnownJobs
from shoal.engine.queues.disciplines.volcano.objects import SCHEDULER, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree

_SCHEDULER = SCHEDULER.encode()


class GroupCache:
    def __init__(self, context: Context, served: Served, on_change: Callable[[], None]) -> None:
        """`on_change` is called when something changed that a session reads."""
        self._informers = context.informers
        self._on_change = on_change
        self._followed: dict[Kind, Informer] = {}
        self._tree: QueueTree | None = None
        self.known = KnownJobs()
        self._pods = context.informers.of(PODS)
        for kind in (VOLCANO_POD_GROUPS, VOLCANO_QUEUES):
            served.when_there(kind, self._follow)

    async def synced(self) -> None:
        for informer in (*self._followed.values(), self._pods):
            await informer.synced()

    @property
    def has_groups(self) -> bool:
        """Whether the API server serves PodGroups."""
        return VOLCANO_POD_GROUPS in self._followed

    @property
    def has_both_kinds(self) -> bool:
        return len(self._followed) == 2

    @property
    def is_synced(self) -> bool:
        """Whether both kinds are served, and they and the pods are known."""
        informers = (*self._followed.values(), self._pods)
        return self.has_both_kinds and all(informer.is_synced for informer in informers)

    def tree(self) -> QueueTree:
        """The queues of now, which the sessions read as well from here on."""
        if self._tree is None:
            found = map(queue_of, self._followed.get(VOLCANO_QUEUES, ()))
            self._tree = QueueTree(queue for queue in found if queue is not None)
            self.known.put_queues(self._tree.queues.values())
        return self._tree

    def groups(self) -> list[QueuedPodGroup]:
        found = map(group_of, self._followed.get(VOLCANO_POD_GROUPS, ()))
        return [group for group in found if group is not None]

    def _follow(self, kind: Kind) -> None:
        informer = self._followed[kind] = self._informers.of(kind)
        informer.on_change(self._queue_changed if kind == VOLCANO_QUEUES else self._group_changed)
        if kind == VOLCANO_POD_GROUPS:
            self._pods.on_change(self._pod_changed)

    def _queue_changed(self, before: Item | None, after: Item | None) -> None:
        old, new = (queue_of(item) if item is not None else None for item in (before, after))
        if old is None or new is None or old.spec != new.spec or old.status.state != new.status.state:
            self._tree = None
            self._on_change()

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        group, facts = group_of(after) if after is not None else None, self.known.facts()
        if group is None or group.metadata.deletion_timestamp is not None:
            self.known.drop_group("/".join(item.key))
        else:
            self.known.put_group(group)
        if self.known.facts() is not facts:
            self._on_change()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        pod = pod_of(after) if after is not None and _SCHEDULER in after.data else None
        if self.known.put_pod(pod) if pod is not None else self.known.drop_pod("/".join(item.key)):
            self._on_change()
