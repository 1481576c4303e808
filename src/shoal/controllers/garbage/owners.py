"""Whether the owners that an object names are there: the caches are asked first, and the server before it is denied.

A name, a kind and a uid must all fit. An owner of a namespaced kind is looked for in the namespace of the object that
names it, and nowhere else. An owner that was once gone stays gone: uids do not come back, so that is remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from shoal.controllers.garbage.followed import Followed
from shoal.controllers.garbage.graph import Node
from shoal.controllers.garbage.references import Owner, Ties, ties
from shoal.controllers.garbage.verdict import Standing
from shoal.store.live.context import Context
from shoal.store.live.item import Item
from shoal.store.live.kind import Kind
from shoal.store.live.refusals import NotFoundError

_REMEMBERED = 4096
_LOST_KIND_S = 5.0
_UNSEEN_S = 5.0
_Address = tuple[str, str, str, str, str]


class Undecided(Exception):  # noqa: N818 - nothing failed
    """It cannot be told what an owner is. `again_s`: when to ask again, None for never."""

    def __init__(self, again_s: float | None) -> None:
        super().__init__()
        self.again_s = again_s


class UnknownKind(Exception):  # noqa: N818 - nothing failed
    """Nobody serves the kind of an owner: there is nothing to ask until other kinds are there."""


class Owners:
    def __init__(self, context: Context, followed: Followed) -> None:
        self._api = context.api
        self._followed = followed
        self._events = context.events.named("garbage-collector-controller")
        self._absent: OrderedDict[_Address, bool] = OrderedDict()
        """And whether an object of that uid stands in another namespace."""

    def all_here(self, node: Node, tied: Ties) -> bool:
        """By the caches, and none of them on its way out: there is nothing to do."""
        for owner in tied.owners:
            found = self._cached(node, owner)
            if found is None or ties(found).waits_for_dependents:
                return False
        return True

    def look_again_s(self, node: Node, solid: Iterable[Owner]) -> float | None:
        """An owner that no cache has yet may come and go without being seen here at all: later, then."""
        return _UNSEEN_S if any(self._cached(node, owner) is None for owner in solid) else None

    async def standing(self, node: Node, owner: Owner) -> Standing:
        kind = self._followed.kind(owner.api_version, owner.kind)
        if kind is None:
            raise UnknownKind
        if kind.is_namespaced and not node.namespace:
            if self._is_elsewhere(kind, owner):
                self._complain(node, owner)
            # No later moment makes this reference a good one, and none makes it safe to delete the object.
            raise Undecided(None)
        found = self._cached(node, owner) or await self._live(kind, node, owner)
        if found is None:
            return Standing.DANGLING
        return Standing.WAITING if ties(found).waits_for_dependents else Standing.SOLID

    def _cached(self, node: Node, owner: Owner) -> Item | None:
        kind = self._followed.kind(owner.api_version, owner.kind)
        if kind is None:
            return None
        return self._followed.item(kind, node.namespace if kind.is_namespaced else "", owner.name, owner.uid)

    async def _live(self, kind: Kind, node: Node, owner: Owner) -> Item | None:
        namespace = node.namespace if kind.is_namespaced else ""
        address = (owner.api_version, owner.kind, namespace, owner.name, owner.uid)
        if address not in self._absent:
            try:
                found = await self._api.get(kind, namespace, owner.name)
                if found.uid == owner.uid:
                    return found
            except NotFoundError as error:
                if not error.details.get("name"):
                    # It is the kind that is not there, for now.
                    raise Undecided(_LOST_KIND_S) from None
            self._absent[address] = kind.is_namespaced and self._is_elsewhere(kind, owner)
            while len(self._absent) > _REMEMBERED:
                self._absent.popitem(last=False)
        if self._absent[address]:
            self._complain(node, owner)
        return None

    def _is_elsewhere(self, kind: Kind, owner: Owner) -> bool:
        return any(item.uid == owner.uid for item in self._followed.informer(kind) or ())

    def _complain(self, node: Node, owner: Owner) -> None:
        meta = {"name": node.name, "namespace": node.namespace, "uid": node.uid}
        about = {"kind": node.kind.name, "apiVersion": node.kind.api_version, "metadata": meta}
        reference = (
            f"[{owner.api_version}/{owner.kind}, namespace: {node.namespace}, name: {owner.name}, uid: {owner.uid}]"
        )
        words = f'ownerRef {reference} does not exist in namespace "{node.namespace}"'
        self._events.record(about, "OwnerRefInvalidNamespace", words, type_="Warning")
