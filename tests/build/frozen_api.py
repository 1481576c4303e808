"""An Api through which a process gets so far and no further: from its n-th write on nothing is sent any more.

    api = FrozenApi(cluster.api, writes=3, is_lost=True)
    scheduler = start_scheduler(cluster, api)
    await api.frozen.wait()
    await scheduler.kill()

With `is_lost` the last write is done and its answer never comes. Every await at which a process can die in the middle
of its writes is one of these. With `counts_reads` it gets through so many calls of any kind: it may also die with what
it has read and done nothing about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from typing import NoReturn, TypeVar

from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import EVENTS, Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind

T = TypeVar("T")


class FrozenApi:
    def __init__(self, api: Api, writes: int, *, is_lost: bool = False, counts_reads: bool = False) -> None:
        """`writes` are done; Events do not count."""
        self.frozen = asyncio.Event()
        self.done = 0
        self._api = api
        self._left = writes
        self._is_lost = is_lost
        self._counts_reads = counts_reads

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        await self._read()
        return await self._api.get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        await self._read()
        return await self._api.list(kind, namespace, select)

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        await self._read()
        async with aclosing(self._api.watch(kind, since, namespace, select)) as batches:
            async for batch in batches:
                yield batch

    async def create(self, kind: Kind, obj: Obj) -> Item:
        call = self._api.create(kind, obj)
        return await (call if kind == EVENTS else self._written(call))

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return await self._written(self._api.update(kind, obj, subresource))

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        call = self._api.patch(kind, namespace, name, patch, subresource)
        return await (call if kind == EVENTS else self._written(call))

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        return await self._written(self._api.delete(kind, namespace, name, how))

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        return await self._written(self._api.post(kind, namespace, name, subresource, obj))

    async def served(self) -> tuple[ServedKind, ...]:
        await self._read()
        return await self._api.served()

    async def close(self) -> None:
        await self._api.close()

    async def _read(self) -> None:
        if self._counts_reads:
            if self._left == 0:
                await self._freeze()
            self._left -= 1

    async def _written(self, call: Awaitable[T]) -> T:
        if self._left == 0:
            close = getattr(call, "close", None)
            if close is not None:
                close()
            await self._freeze()
        self._left -= 1
        answer = await call
        self.done += 1
        if self._left == 0 and self._is_lost:
            await self._freeze()
        return answer

    async def _freeze(self) -> NoReturn:
        self._left = 0
        self.frozen.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing thaws it")
