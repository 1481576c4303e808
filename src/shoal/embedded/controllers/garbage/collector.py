"""Deletes objects whose owners are deleted, and finishes foreground and orphan deletions.

Guarantees: an object is deleted only if the API server itself confirms that each of its owners is deleted, and only in
the version that was checked. A killed collector loses nothing: the next one reads all objects again, and checks each
object with missing owners and each one that is being deleted.
"""

from __future__ import annotations

import asyncio

from shoal.client.context import Context
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import Kind
from shoal.client.loop import Loop
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.garbage.decision import DeleteObject, KeepObject, OwnerState, decide
from shoal.embedded.controllers.garbage.graph import Graph, GraphNode
from shoal.embedded.controllers.garbage.owners import Owners, Undecided, UnknownKind
from shoal.embedded.controllers.garbage.references import FOREGROUND, ORPHAN, OwnerLinks, owner_links
from shoal.embedded.controllers.garbage.watched_kinds import WatchedKinds

_WORKERS = 16
_NOT_READY_S = 0.2
_PARALLEL_WRITES = 16


def garbage_collector(context: Context) -> GarbageCollector:
    return GarbageCollector(context)


class GarbageCollector:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._api = context.api
        self._graph = Graph()
        self._watched_kinds = WatchedKinds(context, self._changed, self._kinds_changed)
        self._unjudged: set[str] = set()
        """The uids of objects with an owner of an unknown kind."""
        self._owners = Owners(context, self._watched_kinds)
        self._loop = Loop(context, self._reconcile, workers=_WORKERS)

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watched_kinds.run())
            group.create_task(self._loop.run())

    # -- event handlers -----------------------------------------------------------------------------------------------

    def _changed(self, kind: Kind, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._gone(before.uid)
            return
        was = self._graph.node(after.uid)
        links = owner_links(after)
        now = self._graph.put(kind, after, links)
        if now is was:
            return
        self._wake_owners(was, now)
        if now is None:
            return
        is_ending_anew = (was is None or not was.waits_for_dependents) and now.waits_for_dependents
        if is_ending_anew:
            for node in self._graph.dependents(now.uid):
                self._wake(node.uid)
        is_left = not links.is_terminating and not self._owners.all_exist(now, links)
        if is_ending_anew or now.orphans_dependents or is_left:
            self._wake(now.uid)

    def _kinds_changed(self) -> None:
        """Wakes objects with unknown kinds of owners: a definition and its first object often appear together."""
        unjudged, self._unjudged = self._unjudged, set()
        for uid in unjudged:
            self._wake(uid)

    def _gone(self, uid: str) -> None:
        self._unjudged.discard(uid)
        was = self._graph.node(uid)
        self._graph.drop(uid)
        self._wake_owners(was, None)
        for node in self._graph.dependents(uid):
            self._wake(node.uid)

    def _wake_owners(self, was: GraphNode | None, now: GraphNode | None) -> None:
        """Wakes owners in foreground deletion whose dependent no longer blocks them."""
        for uid in was.blocks if was is not None else ():
            if now is None or uid not in now.blocks:
                owner = self._graph.node(uid)
                if owner is not None and owner.waits_for_dependents:
                    self._wake(uid)

    def _wake(self, uid: str) -> None:
        self._loop.wake(("", uid))

    # -- reconcile ----------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> float | None:
        node = self._graph.node(key[1])
        if node is None:
            return None
        if not self._watched_kinds.is_ready():
            return _NOT_READY_S
        item = self._watched_kinds.item(node.kind, node.namespace, node.name, node.uid)
        if item is None:
            return None
        links = owner_links(item)
        try:
            if links.orphans_dependents:
                return await self._orphan_dependents(node, item, links)
            if links.waits_for_dependents:
                return await self._finish_foreground(node, item, links)
            if links.is_terminating or not links.owners:
                return None
            return await self._check(node, item, links)
        except NotFoundError:
            # Another client changed or deleted the object; the cache will have it.
            return None

    async def _check(self, node: GraphNode, item: Item, links: OwnerLinks) -> float | None:
        try:
            owner_states = {owner: await self._owners.owner_state(node, owner) for owner in links.owners}
        except Undecided as undecided:
            return undecided.again_s
        except UnknownKind:
            if self._graph.node(node.uid) is not None:
                self._unjudged.add(node.uid)
            return None
        dependents = self._graph.dependents(node.uid)
        in_cycle = any(one.waits_for_dependents for one in dependents)
        decided = decide(links, owner_states, has_dependents=bool(dependents), in_cycle=in_cycle)
        if isinstance(decided, KeepObject):
            if decided.without:
                gone = {owner.uid for owner in decided.without}
                await self._patch(node, item, _owner_references(item, without=gone))
            solid = [owner for owner, owner_state in owner_states.items() if owner_state is OwnerState.SOLID]
            return self._owners.recheck_s(node, solid)
        await self._delete(node, item, decided)
        return None

    async def _delete(self, node: GraphNode, item: Item, decided: DeleteObject) -> None:
        version = item.version
        if decided.unblock:
            version = (await self._patch(node, item, _owner_references(item, unblock=True))).version
        how = Deletion(policy=decided.policy, uid=node.uid, version=version)
        await self._api.delete(node.kind, node.namespace, node.name, how)

    async def _finish_foreground(self, node: GraphNode, item: Item, links: OwnerLinks) -> float | None:
        blockers = self._graph.blockers(node.uid)
        if not blockers:
            await self._patch(node, item, _without_finalizer(links, FOREGROUND))
        for one in blockers:
            if not one.waits_for_dependents:
                self._wake(one.uid)
        return None

    async def _orphan_dependents(self, node: GraphNode, item: Item, links: OwnerLinks) -> float | None:
        dependents = self._graph.dependents(node.uid)
        for start in range(0, len(dependents), _PARALLEL_WRITES):
            group = dependents[start : start + _PARALLEL_WRITES]
            await asyncio.gather(*(self._remove_owner(one, node.uid) for one in group))
        await self._patch(node, item, _without_finalizer(links, ORPHAN))
        return None

    async def _remove_owner(self, node: GraphNode, owner_uid: str) -> None:
        item = self._watched_kinds.item(node.kind, node.namespace, node.name, node.uid)
        if item is None:
            return
        try:
            await self._patch(node, item, _owner_references(item, without={owner_uid}))
        except NotFoundError:
            return

    async def _patch(self, node: GraphNode, item: Item, metadata: Obj) -> Item:
        """Patches only the version that was checked."""
        metadata |= {"uid": item.uid, "resourceVersion": str(item.version)}
        patch = Patch("merge", {"metadata": metadata})
        return await self._api.patch(node.kind, node.namespace, node.name, patch)


def _owner_references(item: Item, *, without: set[str] | None = None, unblock: bool = False) -> Obj:
    """The new owner references, with unknown fields kept."""
    present = item.obj()["metadata"].get("ownerReferences") or []
    kept = [one for one in present if one.get("uid") not in (without or ())]
    if unblock:
        kept = [one | {"blockOwnerDeletion": False} for one in kept]
    return {"ownerReferences": kept or None}


def _without_finalizer(links: OwnerLinks, finalizer: str) -> Obj:
    return {"finalizers": [one for one in links.finalizers or () if one != finalizer] or None}
