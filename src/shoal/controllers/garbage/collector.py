"""The garbage collector: looks at an object when an owner of it may be gone or going, and when it is ending itself.

Promises: an object is deleted only when the server itself says that each of its owners is gone, and only in the version
in which that was decided. A killed collector loses nothing: its successor is told of every object again and looks at
each whose owners are not all there, and at each that is ending.
"""

from __future__ import annotations

import asyncio

from shoal.controllers.garbage.followed import Followed
from shoal.controllers.garbage.graph import Graph, Node
from shoal.controllers.garbage.owners import Owners, Undecided, UnknownKind
from shoal.controllers.garbage.references import FOREGROUND, ORPHAN, Ties, ties
from shoal.controllers.garbage.verdict import Delete, Keep, Standing, verdict
from shoal.store.live.context import Context
from shoal.store.live.item import Item, Key, Obj
from shoal.store.live.kind import Kind
from shoal.store.live.loop import Loop
from shoal.store.live.port import Deletion, Patch
from shoal.store.live.refusals import NotFoundError

_WORKERS = 16
_NOT_READY_S = 0.2
_AT_ONCE = 16


def garbage_collector(context: Context) -> GarbageCollector:
    return GarbageCollector(context)


class GarbageCollector:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._api = context.api
        self._graph = Graph()
        self._followed = Followed(context, self._changed, self._kinds_changed)
        self._unjudged: set[str] = set()
        """Uids of objects with an owner of a kind that nobody serves."""
        self._owners = Owners(context, self._followed)
        self._loop = Loop(context, self._reconcile, workers=_WORKERS)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._followed.run())
            group.create_task(self._loop.run())

    # -- being told ---------------------------------------------------------------------------------------------------

    def _changed(self, kind: Kind, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._gone(before.uid)
            return
        was = self._graph.node(after.uid)
        tied = ties(after)
        now = self._graph.put(kind, after, tied)
        if now is was:
            return
        self._let_owners_look(was, now)
        if now is None:
            return
        is_ending_anew = (was is None or not was.waits_for_dependents) and now.waits_for_dependents
        if is_ending_anew:
            for node in self._graph.dependents(now.uid):
                self._look(node.uid)
        is_left = not tied.is_ending and not self._owners.all_here(now, tied)
        if is_ending_anew or now.lets_dependents_go or is_left:
            self._look(now.uid)

    def _kinds_changed(self) -> None:
        """A definition and the first object of its kind often come in one breath: what they own must not wait."""
        unjudged, self._unjudged = self._unjudged, set()
        for uid in unjudged:
            self._look(uid)

    def _gone(self, uid: str) -> None:
        self._unjudged.discard(uid)
        was = self._graph.node(uid)
        self._graph.drop(uid)
        self._let_owners_look(was, None)
        for node in self._graph.dependents(uid):
            self._look(node.uid)

    def _let_owners_look(self, was: Node | None, now: Node | None) -> None:
        """Owners that wait for their dependents look again when one of these does not hold them any more."""
        for uid in was.blocks if was is not None else ():
            if now is None or uid not in now.blocks:
                owner = self._graph.node(uid)
                if owner is not None and owner.waits_for_dependents:
                    self._look(uid)

    def _look(self, uid: str) -> None:
        self._loop.wake(("", uid))

    # -- looking ------------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> float | None:
        node = self._graph.node(key[1])
        if node is None:
            return None
        if not self._followed.is_ready():
            return _NOT_READY_S
        item = self._followed.item(node.kind, node.namespace, node.name, node.uid)
        if item is None:
            return None
        tied = ties(item)
        try:
            if tied.lets_dependents_go:
                return await self._let_dependents_go(node, item, tied)
            if tied.waits_for_dependents:
                return await self._end_after_dependents(node, item, tied)
            if tied.is_ending or not tied.owners:
                return None
            return await self._judge(node, item, tied)
        except NotFoundError:
            # Somebody else was quicker; the cache is about to say so.
            return None

    async def _judge(self, node: Node, item: Item, tied: Ties) -> float | None:
        try:
            standings = {owner: await self._owners.standing(node, owner) for owner in tied.owners}
        except Undecided as undecided:
            return undecided.again_s
        except UnknownKind:
            if self._graph.node(node.uid) is not None:
                self._unjudged.add(node.uid)
            return None
        dependents = self._graph.dependents(node.uid)
        in_circle = any(one.waits_for_dependents for one in dependents)
        decided = verdict(tied, standings, has_dependents=bool(dependents), in_circle=in_circle)
        if isinstance(decided, Keep):
            if decided.without:
                gone = {owner.uid for owner in decided.without}
                await self._patch(node, item, _references(item, without=gone))
            solid = [owner for owner, standing in standings.items() if standing is Standing.SOLID]
            return self._owners.look_again_s(node, solid)
        await self._delete(node, item, decided)
        return None

    async def _delete(self, node: Node, item: Item, decided: Delete) -> None:
        version = item.version
        if decided.unblock:
            version = (await self._patch(node, item, _references(item, unblock=True))).version
        how = Deletion(policy=decided.policy, uid=node.uid, version=version)
        await self._api.delete(node.kind, node.namespace, node.name, how)

    async def _end_after_dependents(self, node: Node, item: Item, tied: Ties) -> float | None:
        blockers = self._graph.blockers(node.uid)
        if not blockers:
            await self._patch(node, item, _without_finalizer(tied, FOREGROUND))
        for one in blockers:
            if not one.waits_for_dependents:
                self._look(one.uid)
        return None

    async def _let_dependents_go(self, node: Node, item: Item, tied: Ties) -> float | None:
        dependents = self._graph.dependents(node.uid)
        for start in range(0, len(dependents), _AT_ONCE):
            group = dependents[start : start + _AT_ONCE]
            await asyncio.gather(*(self._forget_owner(one, node.uid) for one in group))
        await self._patch(node, item, _without_finalizer(tied, ORPHAN))
        return None

    async def _forget_owner(self, node: Node, owner_uid: str) -> None:
        item = self._followed.item(node.kind, node.namespace, node.name, node.uid)
        if item is None:
            return
        try:
            await self._patch(node, item, _references(item, without={owner_uid}))
        except NotFoundError:
            return

    async def _patch(self, node: Node, item: Item, metadata: Obj) -> Item:
        """Only the version that was decided on is changed."""
        metadata |= {"uid": item.uid, "resourceVersion": str(item.version)}
        patch = Patch("merge", {"metadata": metadata})
        return await self._api.patch(node.kind, node.namespace, node.name, patch)


def _references(item: Item, *, without: set[str] | None = None, unblock: bool = False) -> Obj:
    """The owner references as they are to be, from those that are there: fields unknown here stay in them."""
    present = item.obj()["metadata"].get("ownerReferences") or []
    kept = [one for one in present if one.get("uid") not in (without or ())]
    if unblock:
        kept = [one | {"blockOwnerDeletion": False} for one in kept]
    return {"ownerReferences": kept or None}


def _without_finalizer(tied: Ties, finalizer: str) -> Obj:
    return {"finalizers": [one for one in tied.finalizers or () if one != finalizer] or None}
