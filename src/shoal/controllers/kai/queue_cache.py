"""Reads KAI's queues, SchedulingShards and Config from the watch caches.

A queue that cannot be decoded counts as not existing. A SchedulingShard or Config that cannot be decoded is named in a
warning and decides as it did before: without it, its nodes would be without a shard, or in the shard of all others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from shoal.api.meta import ObjectMeta
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_CONFIGS, KAI_POD_GROUPS, KAI_QUEUES, KAI_SHARDS
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.served import Served
from shoal.engine.queues.disciplines.kai.config_object import CONFIG_NAME, KaiConfig
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.shard_objects import SchedulingShard

_log = logging.getLogger("shoal.kai")
T = TypeVar("T", Queue, SchedulingShard, KaiConfig)
_queues = msgspec.json.Decoder(Queue)
_configs = msgspec.json.Decoder(KaiConfig)
_shards = msgspec.json.Decoder(SchedulingShard)


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
        self._is_followed = asyncio.Event()
        self.queues: dict[str, Queue] = {}
        self.shards: dict[str, SchedulingShard] = {}
        self._configs: dict[str, KaiConfig] = {}
        for kind in (KAI_QUEUES, KAI_POD_GROUPS, KAI_SHARDS, KAI_CONFIGS):
            served.when_there(kind, self._follow)

    @property
    def is_served(self) -> bool:
        return KAI_QUEUES in self._followed

    @property
    def is_synced(self) -> bool:
        """Of all served kinds: without the SchedulingShards of a divided cluster, pods would get nodes of others."""
        return self.is_served and all(informer.is_synced for informer in self._followed.values())

    async def synced(self) -> None:
        """Returns when the caches of all served kinds are synced."""
        if self._followed:
            await self._context.informers.synced(self._followed)

    async def run(self) -> None:
        """Calls `on_change` when the caches are synced after it was decided without them; until cancelled."""
        while True:
            await self._is_followed.wait()
            self._is_followed.clear()
            await self.synced()
            self._on_change()

    @property
    def config(self) -> KaiConfig | None:
        """The one that KAI's operator reads, if there is one."""
        return self._configs.get(CONFIG_NAME)

    def group_uid(self, name: str) -> str:
        """Of the PodGroup of that namespace and name; empty if there is none."""
        groups = self._followed.get(KAI_POD_GROUPS)
        item = groups.get(*name.split("/", 1)) if groups is not None else None
        return "" if item is None else item.uid

    def _follow(self, kind: Kind) -> None:
        informer = self._followed[kind] = self._context.informers.of(kind)
        self._is_followed.set()
        self._on_followed(kind, informer)
        if kind == KAI_QUEUES:
            informer.on_change(lambda before, after: self._changed(self.queues, queue_of, before, after))
        if kind == KAI_SHARDS:
            informer.on_change(lambda before, after: self._changed(self.shards, _shard_of, before, after))
        if kind == KAI_CONFIGS:
            informer.on_change(lambda before, after: self._changed(self._configs, _config_of, before, after))

    def _changed(
        self, known: dict[str, T], read: Callable[[Item], T | None], before: Item | None, after: Item | None
    ) -> None:
        item = after or before
        value = read(after) if after is not None else None
        if value is None and after is not None and (what := _KEPT.get(read)):
            _log.warning("%s %s cannot be read, and has the effect that it had before", what, after.name)
            return
        if item is None or known.get(item.name) == value:
            return
        if value is None:
            known.pop(item.name, None)
        else:
            known[item.name] = value
        self._on_change()


def queue_of(item: Item) -> Queue | None:
    try:
        return _queues.decode(item.data)
    except msgspec.DecodeError:
        return None


def _shard_of(item: Item) -> SchedulingShard | None:
    """Without its metadata but the name: what Shoal writes to it changes nothing here."""
    try:
        found = _shards.decode(item.data)
    except msgspec.DecodeError:
        return None
    return SchedulingShard(ObjectMeta(name=found.name), found.spec)


def _config_of(item: Item) -> KaiConfig | None:
    """Without its metadata but the name: its status changes nothing here."""
    try:
        found = _configs.decode(item.data)
    except msgspec.DecodeError:
        return None
    return KaiConfig(ObjectMeta(name=found.name), found.spec)


_KEPT: dict[object, str] = {_shard_of: "SchedulingShard", _config_of: "Config"}
"""Kinds of which an object that cannot be read keeps its effect."""
