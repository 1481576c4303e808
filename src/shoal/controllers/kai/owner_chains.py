"""Finds the owners of a pod: its owner, the owner of that object, up to the top one.

Owners of four kinds are read from caches that exist anyway. Any other owner is fetched, in the version that its child
names, and kept for a moment: a gang of a thousand pods arrives at once and has one owner.

If an owner may not be read, or the API server does not serve its kind, the chain ends below it, as in KAI. A missing
owner, or one with another uid, does not end the chain: the cache may be late, or the pod is about to be deleted.

Rejected: watching each kind that may own pods. There are too many kinds, and each would be a watch.
"""

from __future__ import annotations

import logging

from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import JOBS, PODS, REPLICA_SETS, STATEFUL_SETS, Kind
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.client.served import answering
from shoal.controllers.kai.workload_object import OwnerReference, WorkloadObject, workload_object
from shoal.units.errors import ShoalError, TemporaryError

_log = logging.getLogger("shoal.kai")
_MAX_OWNERS = 10
_CACHE_S = 5.0
_RETRY_S = 1.0
_REDISCOVER_S = 30.0
_FOLLOWED = {(kind.api_version, kind.name): kind for kind in (PODS, JOBS, REPLICA_SETS, STATEFUL_SETS)}


class OwnerMissingError(TemporaryError):
    """The API server does not have the owner, or not yet."""

    def __init__(self, what: str) -> None:
        super().__init__(what, _RETRY_S)


class OwnerChains:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._kinds: dict[tuple[str, str], Kind] = {}
        """By apiVersion and kind."""
        self._asked_s = float("-inf")
        self._known: dict[str, tuple[float, WorkloadObject]] = {}
        """By uid."""

    async def owners_of(self, child: WorkloadObject) -> list[WorkloadObject]:
        """The owners, the nearest first; empty without an owner."""
        found: list[WorkloadObject] = []
        while child.owner is not None and len(found) < _MAX_OWNERS:
            try:
                owners_of = await self._find(child.owner, child.namespace)
            except ForbiddenError as error:
                _log.info(
                    "The owner of %s %s may not be read, so it is the top owner of its pods: %s",
                    child.kind,
                    child.name,
                    error,
                )
                break
            if owners_of is None:
                break
            found.append(owners_of)
            child = owners_of
        return found

    async def named(self, api_version: str, kind: str, namespace: str, name: str) -> WorkloadObject | None:
        """An object that is not an owner, but that an owner refers to."""
        served = await self._kind(api_version, kind)
        try:
            item = await self._context.api.get(served, namespace, name) if served is not None else None
        except NotFoundError:
            return None
        return None if item is None else workload_object(api_version, kind, item)

    async def _find(self, owner: OwnerReference, namespace: str) -> WorkloadObject | None:
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
        found = workload_object(owner.api_version, owner.kind, item)
        self._known[owner.uid] = now_s + _CACHE_S, found
        return found

    async def _item(self, kind: Kind, namespace: str, owner: OwnerReference) -> Item:
        if _FOLLOWED.get((owner.api_version, owner.kind)) == kind:
            item = self._context.informers.of(kind).get(namespace, owner.name)
            if item is not None and item.uid == owner.uid:
                return item
        try:
            item = await self._context.api.get(kind, namespace, owner.name)
        except NotFoundError as error:
            raise OwnerMissingError(f"owner {owner.kind} {owner.name!r} not found") from error
        if item.uid != owner.uid:
            raise OwnerMissingError(f"owner {owner.kind} {owner.name!r} has another uid")
        return item

    async def _kind(self, api_version: str, name: str) -> Kind | None:
        followed = _FOLLOWED.get((api_version, name))
        known = followed or self._kinds.get((api_version, name))
        now_s = self._context.clock.seconds()
        if known is not None or now_s < self._asked_s + _REDISCOVER_S:
            return known
        try:
            served = await answering(self._context.api)
        except TemporaryError:
            raise
        except ShoalError as error:
            _log.info("Failed to discover the kinds of the API server: %s", error)
            return None
        self._asked_s = now_s
        for one in served:
            for version in one.versions:
                kind = one.kind._replace(version=version)
                self._kinds[kind.api_version, kind.name] = kind
        return self._kinds.get((api_version, name))
