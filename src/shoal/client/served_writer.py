"""Applies and deletes objects of any kind that a server has, in a version that it serves.

Guarantees: an object whose kind the server does not have is returned as such and is no error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.client.port import Api, Deletion, Patch, ServedKind
from shoal.client.refusals import NotFoundError
from shoal.client.served import answering
from shoal.units.errors import ConflictError

T = TypeVar("T")
_TRIES = 5


class ServedWriter:
    def __init__(self, api: Api, served: Iterable[ServedKind]) -> None:
        self.api = api
        self._served = {(one.kind.group, one.kind.name): one for one in served}

    @classmethod
    async def of(cls, api: Api) -> ServedWriter:
        return cls(api, await answering(api))

    def kind_of(self, obj: Obj) -> Kind | None:
        """In the version of the object if it is served, else in the preferred one; None: the server lacks the kind."""
        group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
        found = self._served.get((group, str(obj.get("kind") or "")))
        if found is None:
            return None
        return found.kind._replace(version=version) if version in found.versions else found.kind

    def version_of(self, group: str, name: str) -> str:
        """The preferred one; empty if the server lacks the kind."""
        found = self._served.get((group, name))
        return found.kind.version if found else ""

    async def apply(self, obj: Obj) -> Obj | None:
        """Server-side apply, which takes over fields of other managers. None: the server lacks the kind."""
        kind = self.kind_of(obj)
        if kind is None:
            return None
        meta = obj["metadata"]
        written = {**obj, "apiVersion": kind.api_version}
        patch = Patch("apply", written, force=True)
        namespace = str(meta.get("namespace", ""))
        return (await self._repeated(lambda: self.api.patch(kind, namespace, meta["name"], patch))).obj()

    async def find(self, obj: Obj) -> Obj | None:
        """The object of the cluster with the kind, namespace and name of this one."""
        kind = self.kind_of(obj)
        if kind is None:
            return None
        meta = obj["metadata"]
        try:
            return (await self.api.get(kind, str(meta.get("namespace", "")), meta["name"])).obj()
        except NotFoundError:
            return None

    async def delete(self, obj: Obj) -> bool:
        """True if it existed."""
        kind = self.kind_of(obj)
        if kind is None:
            return False
        meta = obj["metadata"]
        try:
            await self.api.delete(kind, str(meta.get("namespace", "")), meta["name"], Deletion(policy="Background"))
        except NotFoundError:
            return False
        return True

    async def _repeated(self, call: Callable[[], Awaitable[T]]) -> T:
        for _ in range(_TRIES - 1):
            try:
                return await call()
            except ConflictError:
                continue
        return await call()


def described(obj: dict[str, Any]) -> str:
    """`ResourceQuota team-a/gpus`."""
    meta = obj["metadata"]
    namespace = meta.get("namespace", "")
    return f"{obj['kind']} {namespace}/{meta['name']}" if namespace else f"{obj['kind']} {meta['name']}"
