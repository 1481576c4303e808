"""Who stands above a pod: its owner, the owner of that one, up to the one that a person made.

Owners of four kinds are in caches that somebody keeps anyway; any other is asked for, in the version that its child
names, and remembered for a moment: a gang of a thousand pods comes at once, and has one owner.

Where an owner may not be read, or nobody serves its kind, the chain ends below it, as KAI's does. An owner that is not
there, or is another one of the same name, is no end: a cache is late, or the pod is about to go.

Rejected: following every kind that may own pods. They are as many as there are projects, and each would be a watch.
"""

from __future__ import annotations

import logging

from shoal.controllers.kai.owned import Owned, Reference, owned_of
from shoal.store.live.context import Context
from shoal.store.live.item import Item
from shoal.store.live.kind import JOBS, PODS, REPLICA_SETS, STATEFUL_SETS, Kind
from shoal.store.live.refusals import ForbiddenError, NotFoundError
from shoal.store.live.served import answering
from shoal.units.errors import ShoalError, TemporaryError

_log = logging.getLogger("shoal.kai")
_HIGHEST = 10
_KEPT_S = 5.0
_SOON_S = 1.0
_ASK_AGAIN_S = 30.0
_FOLLOWED = {(kind.api_version, kind.name): kind for kind in (PODS, JOBS, REPLICA_SETS, STATEFUL_SETS)}


class OwnerMissingError(TemporaryError):
    """Somebody owns it whom the server does not have, or not yet."""

    def __init__(self, what: str) -> None:
        super().__init__(what, _SOON_S)


class OwnerChains:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._kinds: dict[tuple[str, str], Kind] = {}
        """By apiVersion and kind."""
        self._asked_s = float("-inf")
        self._known: dict[str, tuple[float, Owned]] = {}
        """By uid."""

    async def above(self, owned: Owned) -> list[Owned]:
        """The nearest first; empty for one that nobody owns."""
        found: list[Owned] = []
        while owned.owner is not None and len(found) < _HIGHEST:
            try:
                above = await self._find(owned.owner, owned.namespace)
            except ForbiddenError as error:
                _log.info("%s %s is as high as its pods' group is read from: %s", owned.kind, owned.name, error)
                break
            if above is None:
                break
            found.append(above)
            owned = above
        return found

    async def named(self, api_version: str, kind: str, namespace: str, name: str) -> Owned | None:
        """One that is no owner, but that an owner tells of."""
        served = await self._kind(api_version, kind)
        try:
            item = await self._context.api.get(served, namespace, name) if served is not None else None
        except NotFoundError:
            return None
        return None if item is None else owned_of(api_version, kind, item)

    async def _find(self, owner: Reference, namespace: str) -> Owned | None:
        now_s = self._context.clock.seconds()
        if len(self._known) > 256:
            self._known = {uid: kept for uid, kept in self._known.items() if kept[0] > now_s}
        due_s, known = self._known.get(owner.uid, (now_s, None))
        if known is not None and due_s > now_s:
            return known
        kind = await self._kind(owner.api_version, owner.kind)
        if kind is None:
            return None
        item = await self._item(kind, namespace if kind.is_namespaced else "", owner)
        found = owned_of(owner.api_version, owner.kind, item)
        self._known[owner.uid] = now_s + _KEPT_S, found
        return found

    async def _item(self, kind: Kind, namespace: str, owner: Reference) -> Item:
        if _FOLLOWED.get((owner.api_version, owner.kind)) == kind:
            item = self._context.informers.of(kind).get(namespace, owner.name)
            if item is not None and item.uid == owner.uid:
                return item
        try:
            item = await self._context.api.get(kind, namespace, owner.name)
        except NotFoundError as error:
            raise OwnerMissingError(f"its owner {owner.kind} {owner.name} is not there") from error
        if item.uid != owner.uid:
            raise OwnerMissingError(f"its owner {owner.kind} {owner.name} is another one by now")
        return item

    async def _kind(self, api_version: str, name: str) -> Kind | None:
        followed = _FOLLOWED.get((api_version, name))
        known = followed or self._kinds.get((api_version, name))
        now_s = self._context.clock.seconds()
        if known is not None or now_s < self._asked_s + _ASK_AGAIN_S:
            return known
        try:
            served = await answering(self._context.api)
        except TemporaryError:
            raise
        except ShoalError as error:
            _log.info("the server's kinds cannot be read: %s", error)
            return None
        self._asked_s = now_s
        for one in served:
            for version in one.versions:
                kind = one.kind._replace(version=version)
                self._kinds[kind.api_version, kind.name] = kind
        return self._kinds.get((api_version, name))
