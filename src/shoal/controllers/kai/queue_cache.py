"""Reads KAI's queues from the watch cache. A queue that cannot be decoded counts as not existing."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.served import Served
from shoal.engine.queues.disciplines.kai.objects import Queue

_queues = msgspec.json.Decoder(Queue)


class QueueCache:
    """`on_change` is called when queues changed; `followed` when the API server serves queues or PodGroups."""

    def __init__(
        self,
        context: Context,
        served: Served,
        on_change: Callable[[], None],
        followed: Callable[[Kind, Informer], None],
    ) -> None:
        self._context = context
        self._on_change = on_change
        self._on_followed = followed
        self._followed: dict[Kind, Informer] = {}
        self.queues: dict[str, Queue] = {}
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

    def _follow(self, kind: Kind) -> None:
        informer = self._followed[kind] = self._context.informers.of(kind)
        self._on_followed(kind, informer)
        if kind == KAI_QUEUES:
            informer.on_change(self._changed)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        queue = queue_of(after) if after is not None else None
        if item is None or self.queues.get(item.name) == queue:
            return
        if queue is None:
            self.queues.pop(item.name, None)
        else:
            self.queues[item.name] = queue
        self._on_change()


def queue_of(item: Item) -> Queue | None:
    try:
        return _queues.decode(item.data)
    except msgspec.DecodeError:
        return None
