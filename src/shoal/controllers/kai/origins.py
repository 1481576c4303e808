"""KAI's queues and groups as caches have them, and to which of them a pod belongs."""

from __future__ import annotations

from collections.abc import Callable

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.controllers.kai.sights import PodGroup, Queue, group_of, queue_of
from shoal.controllers.kai.works import Origin
from shoal.engine.who import Who
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item
from shoal.store.live.kind import Kind
from shoal.store.live.served import Served


class Origins:
    """`wake` is called when there is news; `followed` when a kind turned out to be served."""

    def __init__(
        self, context: Context, served: Served, wake: Callable[[], None], followed: Callable[[Kind, Informer], None]
    ) -> None:
        self._context = context
        self._wake = wake
        self._on_followed = followed
        self._followed: dict[Kind, Informer] = {}
        self.queues: dict[str, Queue] = {}
        self.is_stale = True
        """Queues changed since somebody looked."""
        self._changed: dict[str, Origin] = {}
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
        """Returns when all is known of what is served by now."""
        if self._followed:
            await self._context.informers.synced(self._followed)

    def of(self, pod: str, who: Who) -> Origin | None:
        """None for pods that no queue of KAI is asked about."""
        if not self.is_served:
            return None
        group = self._group(who.group) if who.group else None
        if group is not None:
            return _of_group(who.group, group)
        queue = dict(who.traits.labels).get(QUEUE_LABEL, "")
        if queue and who.group:
            return Origin(who.group, queue, is_known=False)
        return Origin(pod, queue) if queue else None

    def take_groups(self) -> list[Origin]:
        """Groups that came or say something else since the last call."""
        changed, self._changed = self._changed, {}
        return list(changed.values())

    @property
    def is_quiet(self) -> bool:
        return not self.is_stale and not self._changed

    # Inside

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
        self._wake()

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        group = group_of(after) if after is not None else None
        old = group_of(before) if before is not None else None
        if after is not None and group is not None and (old is None or old.spec != group.spec):
            name = f"{after.namespace}/{after.name}"
            self._changed[name] = _of_group(name, group)
            self._wake()

    def _group(self, name: str) -> PodGroup | None:
        groups = self._followed.get(KAI_POD_GROUPS)
        namespace, _, rest = name.partition("/")
        item = groups.get(namespace, rest) if groups is not None else None
        return group_of(item) if item is not None else None


def _of_group(name: str, group: PodGroup) -> Origin:
    return Origin(name, group.spec.queue, group.minimum, group.spec.is_preemptible())
