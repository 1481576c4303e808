"""Confines the caches of a joined machine to what its node may read: its own Node, and the pods bound to it.

Before the cache has a pod, the labels of its namespace are known: they decide whether process pods are allowed there.
They are read anew for each new pod, because the permission may have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import aclosing

import msgspec

from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import NAMESPACES, NODES, PODS, Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.refusals import ForbiddenError, NotFoundError


class OwnObjectsApi:
    """Implements `Api`."""

    def __init__(self, api: Api, node: str) -> None:
        self._api = api
        self._fields = {PODS: f"spec.nodeName={node}", NODES: f"metadata.name={node}"}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._known: set[str] = set()
        """The uids of pods whose namespace was read."""

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self._labels.get(namespace, {})

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        found = await self._api.list(kind, namespace, self._own(kind, select))
        if kind == PODS:
            self._known &= {item.uid for item in found.items}
            await self._read_namespaces(found.items)
        return found

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        async with aclosing(self._api.watch(kind, since, namespace, self._own(kind, select))) as batches:
            async for batch in batches:
                if kind == PODS:
                    await self._read_namespaces(event.item for event in batch if event.item is not None)
                yield batch

    def _own(self, kind: Kind, select: Select) -> Select:
        own = self._fields.get(kind, "")
        fields = ",".join(part for part in (select.fields, own) if part)
        return msgspec.structs.replace(select, fields=fields)

    async def _read_namespaces(self, pods: Iterable[Item]) -> None:
        new = [item for item in pods if item.uid not in self._known]
        for name in sorted({item.namespace for item in new}):
            try:
                metadata = (await self._api.get(NAMESPACES, "", name)).obj()["metadata"]
                self._labels[name] = metadata.get("labels") or {}
            except (NotFoundError, ForbiddenError):
                # The pod is gone already.
                self._labels[name] = {}
        self._known.update(item.uid for item in new)

    # -- the rest is passed on --------------------------------------------------------------------------------------

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return await self._api.get(kind, namespace, name)

    async def create(self, kind: Kind, obj: Obj) -> Item:
        return await self._api.create(kind, obj)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return await self._api.update(kind, obj, subresource)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        return await self._api.patch(kind, namespace, name, patch, subresource)

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        return await self._api.delete(kind, namespace, name, how)

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        return await self._api.post(kind, namespace, name, subresource, obj)

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._api.served()

    async def close(self) -> None:
        await self._api.close()
