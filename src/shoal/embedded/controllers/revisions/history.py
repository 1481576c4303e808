"""Maintains the revisions of one owner: the current template is the newest revision, and old ones are deleted beyond a
limit.

A rollback to an old template creates no second revision: the old one gets the next number. If another object has the
name, the collision count in the owner's status is increased.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from shoal.api.selectors import Selector
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import CONTROLLER_REVISIONS, Kind
from shoal.client.owned_pods.ownership import Claims
from shoal.client.port import Deletion
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.embedded.controllers.revisions.revision import data_of, in_order, made_revision
from shoal.units.errors import ConflictError

_MOST_COLLISIONS = 16


class History:
    """`hash_label`: the label with the hash, which differs between StatefulSets and DaemonSets."""

    def __init__(self, context: Context, owner: tuple[Kind, Obj], selector: Selector, hash_label: str) -> None:
        self._context = context
        self._owner = owner
        self._hash_label = hash_label
        self._selector = selector
        self.collisions: int = (owner[1].get("status") or {}).get("collisionCount", 0)
        self.all: list[Obj] = []
        """Oldest first."""

    async def settle(self) -> Obj:
        """The revision of the current template."""
        kind, owner = self._owner
        claims = Claims(self._context.api, (kind, CONTROLLER_REVISIONS), owner, self._selector)
        informer = self._context.informers.of(CONTROLLER_REVISIONS)
        self.all = in_order([item.obj() for item in await claims.claimed(informer)])
        data = data_of(owner["spec"]["template"])
        equal = [one for one in self.all if one["data"] == data]
        number = self.all[-1]["revision"] + 1 if self.all else 1
        if not equal:
            latest = await self._create(number)
            self.all.append(latest)
        elif equal[-1] is self.all[-1]:
            latest = equal[-1]
        else:
            latest = (await self._context.api.update(CONTROLLER_REVISIONS, {**equal[-1], "revision": number})).obj()
            self.all.remove(equal[-1])
            self.all.append(latest)
        return latest

    async def trim(self, in_use: Collection[str], limit: int) -> None:
        """Deletes the oldest unused revisions beyond the limit."""
        unused = [one for one in self.all if one["metadata"]["name"] not in in_use]
        for one in unused[: max(len(unused) - limit, 0)]:
            meta = one["metadata"]
            with suppress(NotFoundError):
                how = Deletion(uid=meta["uid"])
                await self._context.api.delete(CONTROLLER_REVISIONS, meta["namespace"], meta["name"], how)

    async def _create(self, number: int) -> Obj:
        for _ in range(_MOST_COLLISIONS):
            made = made_revision(self._owner, self._hash_label, number, self.collisions)
            meta, data = dict(made["metadata"]), made["data"]
            try:
                return (await self._context.api.create(CONTROLLER_REVISIONS, made)).obj()
            except AlreadyExistsError:
                found = await self._context.api.get(CONTROLLER_REVISIONS, meta["namespace"], meta["name"])
                if self._is_mine(found) and found.obj()["data"] == data:
                    return found.obj()
            self.collisions += 1
        raise ConflictError(f"no free name for a revision of {self._owner[1]['metadata']['name']}")

    def _is_mine(self, item: Item) -> bool:
        owners = item.obj()["metadata"].get("ownerReferences") or ()
        return any(one.get("controller") and one["uid"] == self._owner[1]["metadata"]["uid"] for one in owners)
