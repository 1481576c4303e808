"""Adopts and releases dependents of an owner by its selector.

An owner keeps dependents that name it as controller and match the selector, releases those that do not match, and
adopts matching ones without a controller. Before an adoption the owner is read from the API server, not from the cache:
an owner that was deleted or is being deleted must not undo the work of an orphaning garbage collector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from shoal.api.selectors import LabelSelector, Selector
from shoal.client.index import Index
from shoal.client.informer import Informer
from shoal.client.item import Item, Obj, Seen
from shoal.client.kind import Kind
from shoal.client.owned_pods.pod_view import OwnedPodMeta
from shoal.client.owner_reference import controlled_by
from shoal.client.port import Api, Patch
from shoal.client.refusals import InvalidError, NotFoundError
from shoal.units.errors import ConflictError

_INDEX = "controller"


class _MetaOnly(msgspec.Struct, gc=False):
    metadata: OwnedPodMeta


def owner_index(informer: Informer) -> Index:
    """Indexes dependents by the uid of their controller; those without one by `orphans(namespace)`."""
    return informer.index(_INDEX, _owner_of)


def orphans(namespace: str) -> str:
    return f"orphans of {namespace}"


_seen = Seen(_MetaOnly)


def head(item: Item) -> OwnedPodMeta:
    return _seen(item).metadata


def controller_reference(kind: Kind, meta: Obj) -> Obj:
    return controlled_by(kind, meta["name"], meta["uid"])


class Claims:
    """Adopts and releases dependents of one kind for one owner. `is_candidate`: a filter besides the labels."""

    def __init__(
        self,
        api: Api,
        kinds: tuple[Kind, Kind],
        owner: Obj,
        selector: Selector,
        is_candidate: Callable[[Item, OwnedPodMeta], bool] = lambda _item, _meta: True,
    ) -> None:
        """`kinds`: the kinds of the owner and of the dependents."""
        self._api = api
        self._owner_kind, self._kind = kinds
        self._owner = owner["metadata"]
        self._selector = selector
        self._is_candidate = is_candidate
        self._may_adopt: bool | None = None

    async def claimed(self, informer: Informer) -> list[Item]:
        """The dependents of the owner, after adoption and release."""
        by_owner = owner_index(informer)
        mine: list[Item] = []
        for item in by_owner[self._owner["uid"]]:
            meta = head(item)
            if not self._selector.matches(meta.labels):
                if "deletionTimestamp" not in self._owner:
                    await self._release(item)
            elif self._is_candidate(item, meta):
                mine.append(item)
        if "deletionTimestamp" not in self._owner:
            mine.extend(await self._adopted(by_owner[orphans(self._owner["namespace"])]))
        return mine

    async def _adopted(self, candidates: Iterable[Item]) -> list[Item]:
        taken = []
        for item in candidates:
            meta = head(item)
            fits = meta.deletion_timestamp is None and self._selector.matches(meta.labels)
            if not fits or not self._is_candidate(item, meta):
                continue
            if self._may_adopt is None:
                self._may_adopt = await self._is_still_there()
            if not self._may_adopt:
                break
            reference = controller_reference(self._owner_kind, self._owner)
            adopted = await self._patched(item, {"ownerReferences": [reference], "uid": item.uid})
            if adopted is not None:
                taken.append(adopted)
        return taken

    async def _release(self, item: Item) -> None:
        gone = {"$patch": "delete", "uid": self._owner["uid"]}
        await self._patched(item, {"ownerReferences": [gone], "uid": item.uid})

    async def _patched(self, item: Item, metadata: Any) -> Item | None:
        try:
            patch = Patch("strategic", {"metadata": metadata})
            return await self._api.patch(self._kind, item.namespace, item.name, patch)
        except (NotFoundError, InvalidError, ConflictError):
            # The dependent was deleted, created again, or changed by another client: the cache will have it.
            return None

    async def _is_still_there(self) -> bool:
        try:
            fresh = await self._api.get(self._owner_kind, self._owner["namespace"], self._owner["name"])
        except NotFoundError:
            return False
        return fresh.uid == self._owner["uid"] and head(fresh).deletion_timestamp is None


def _owner_of(item: Item) -> tuple[str]:
    owner = head(item).controller()
    return (owner.uid if owner is not None else orphans(item.namespace),)


def selector_of_spec(spec: Obj) -> Selector:
    """The selector in the spec of a workload, with labels and expressions."""
    return msgspec.convert(spec.get("selector") or {}, LabelSelector).selector()
