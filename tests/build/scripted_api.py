"""A server of one kind that fits on a screen: what an informer needs, with watches that a test can break.

It keeps every change, so that watches may begin anywhere; it checks nothing but names and versions.
"""

from __future__ import annotations

import asyncio

import msgspec

from shoal.client.item import Item, Listed, Obj, WatchEvent, item_of
from shoal.client.kind import Kind
from shoal.client.port import EVERYTHING, GENTLY, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.refusals import AlreadyExistsError, ExpiredError, NotFoundError, StaleError


class ScriptedApi:
    def __init__(self) -> None:
        self.lists = 0
        self.watched_from: list[int] = []
        self.watches_end_at_once = False
        self.ends_with: Exception | None = None
        """What a watch raises when it ends; None: nothing."""
        self._made = 0
        self._wakeup = asyncio.Event()
        self._breaks = 0
        self.start_anew()

    # -- what a test does to it -------------------------------------------------------------------------------------

    def start_anew(self) -> None:
        """Nothing is there, and versions are counted from the beginning; uids are never given twice."""
        self._objects: dict[tuple[str, str], Obj] = {}
        self._history: list[WatchEvent] = []
        self._version = 0

    def break_watches(self, error: Exception | None) -> None:
        """Every open watch ends, with this error if there is one."""
        self._breaks += 1
        self.ends_with = error
        self._wake()

    def expire(self) -> None:
        self.break_watches(ExpiredError("forgotten"))

    # -- the port ---------------------------------------------------------------------------------------------------

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return _item(self._present(namespace, name))

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        self.lists += 1
        return Listed([_item(obj) for obj in self._objects.values()], self._version)

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        self.watched_from.append(since)
        breaks = self._breaks
        while breaks == self._breaks and not self.watches_end_at_once:
            batch = [change for change in self._history if change.version > since]
            if batch:
                since = batch[-1].version
                yield batch
            else:
                await self._wakeup.wait()
        if self.ends_with is not None:
            raise self.ends_with

    async def create(self, kind: Kind, obj: Obj) -> Item:
        meta = obj["metadata"]
        if (meta["namespace"], meta["name"]) in self._objects:
            raise AlreadyExistsError("taken", reason="AlreadyExists")
        self._made += 1
        meta["uid"] = f"uid-{self._made}"
        return self._kept("ADDED", obj)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        meta = obj["metadata"]
        present = self._present(meta["namespace"], meta["name"])
        if present["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            raise StaleError("somebody was first", reason="Conflict")
        return self._kept("MODIFIED", obj)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        raise NotImplementedError

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        present = self._present(namespace, name)
        if how.uid not in ("", present["metadata"]["uid"]):
            raise StaleError("another one", reason="Conflict")
        del self._objects[namespace, name]
        self._told("DELETED", present)
        return None

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        raise NotImplementedError

    async def served(self) -> tuple[ServedKind, ...]:
        return ()

    async def close(self) -> None:
        """Nothing is open."""

    def _present(self, namespace: str, name: str) -> Obj:
        found = self._objects.get((namespace, name))
        if found is None:
            raise NotFoundError("not there", reason="NotFound")
        return found

    def _kept(self, kind: str, obj: Obj) -> Item:
        self._objects[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
        return self._told(kind, obj)

    def _told(self, kind: str, obj: Obj) -> Item:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        item = _item(obj)
        self._history.append(WatchEvent(kind, item, self._version))  # type: ignore[arg-type]
        self._wake()
        return item

    def _wake(self) -> None:
        self._wakeup.set()
        self._wakeup = asyncio.Event()


def _item(obj: Obj) -> Item:
    return item_of(msgspec.json.encode(obj))
