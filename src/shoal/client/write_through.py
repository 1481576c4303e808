"""Updates the caches of this process with the results of its own writes, before the watch does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.client.informers import Informers
from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind


class WriteThroughApi:
    def __init__(self, api: Api, informers: Informers) -> None:
        self._api = api
        self._informers = informers

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return self._learned(kind, await self._api.get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        return await self._api.list(kind, namespace, select)

    def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        return self._api.watch(kind, since, namespace, select)

    async def create(self, kind: Kind, obj: Obj) -> Item:
        return self._learned(kind, await self._api.create(kind, obj))

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return self._learned(kind, await self._api.update(kind, obj, subresource))

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        return self._learned(kind, await self._api.patch(kind, namespace, name, patch, subresource))

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        left = await self._api.delete(kind, namespace, name, how)
        informer = self._informers.known(kind)
        if left is not None:
            return self._learned(kind, left)
        if informer is not None and how.uid:
            informer.learn_gone((namespace, name), how.uid)
        return None

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        return await self._api.post(kind, namespace, name, subresource, obj)

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._api.served()

    async def close(self) -> None:
        await self._api.close()

    def _learned(self, kind: Kind, item: Item) -> Item:
        informer = self._informers.known(kind)
        if informer is None:
            return item
        if _has_ended(item):
            informer.learn_gone(item.key, item.uid)
        else:
            informer.learn(item)
        return item


class _DeletionState(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: Sequence[str] | None = None


class _Finalizers(msgspec.Struct):
    finalizers: Sequence[str] | None = None
    """The finalizers in the spec of a namespace."""


class _WrittenObject(msgspec.Struct):
    metadata: _DeletionState
    spec: _Finalizers | None = None


def _has_ended(item: Item) -> bool:
    """Whether the answered write completed a deletion: it removed the last finalizer of a terminating object."""
    if b'"deletionTimestamp"' not in item.data:
        return False
    try:
        head = item.read(_WrittenObject)
    except msgspec.DecodeError:
        # A custom object may use the field for something else.
        return False
    meta, spec = head.metadata, head.spec
    waits = meta.finalizers or meta.deletion_grace_period_seconds or (spec is not None and spec.finalizers)
    return meta.deletion_timestamp is not None and not waits
