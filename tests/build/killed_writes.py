"""An Api whose process is killed right before or right after its n-th write."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind
from shoal.units.errors import ShoalError

P = ParamSpec("P")
T = TypeVar("T")
_QUESTIONS = frozenset({"SelfSubjectAccessReview", "SelfSubjectReview"})
"""They are posted and never stored."""


class KilledError(BaseException):
    """No code of the process may handle it."""


class KilledApi:
    def __init__(self, api: Api, at: int = 0, *, is_done: bool = False) -> None:
        """`at`: the number of the write, from 1; 0: never. `is_done`: it reaches the server, and nobody hears of it."""
        self.writes = 0
        self._api = api
        self._at = at
        self._is_done = is_done

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return await self._api.get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        return await self._api.list(kind, namespace, select)

    def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        return self._api.watch(kind, since, namespace, select)

    async def create(self, kind: Kind, obj: Obj) -> Item:
        return await self._written(self._api.create, kind, obj)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return await self._written(self._api.update, kind, obj, subresource)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        return await self._written(self._api.patch, kind, namespace, name, patch, subresource)

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        return await self._written(self._api.delete, kind, namespace, name, how)

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        if kind.name in _QUESTIONS:
            return await self._api.post(kind, namespace, name, subresource, obj)
        return await self._written(self._api.post, kind, namespace, name, subresource, obj)

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._api.served()

    async def close(self) -> None:
        await self._api.close()

    async def _written(self, call: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs) -> T:
        self.writes += 1
        if self.writes != self._at:
            return await call(*arguments, **named)
        try:
            if self._is_done:
                await call(*arguments, **named)
        except ShoalError:
            pass
        raise KilledError
