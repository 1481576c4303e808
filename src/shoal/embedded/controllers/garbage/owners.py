"""Checks whether the owners of an object exist: first in the caches, then at the API server.

Name, kind and uid must match. An owner of a namespaced kind is searched only in the namespace of the object. An owner
that was once absent stays absent, because uids are not reused; so this result is cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.garbage.decision import OwnerState
from shoal.embedded.controllers.garbage.graph import GraphNode
from shoal.embedded.controllers.garbage.references import BlockingOwner, OwnerLinks, owner_links
from shoal.embedded.controllers.garbage.watched_kinds import WatchedKinds

_REMEMBERED = 4096
_LOST_KIND_S = 5.0
_UNSEEN_S = 5.0
_Address = tuple[str, str, str, str, str]


class Undecided(Exception):  # noqa: N818 - nothing failed
    """The state of an owner is unknown. `again_s`: when to check again, None for never."""

    def __init__(self, again_s: float | None) -> None:
        super().__init__()
        self.again_s = again_s


class UnknownKind(Exception):  # noqa: N818 - nothing failed
    """The kind of an owner is unknown: the check is repeated when the list of kinds changes."""


class Owners:
    def __init__(self, context: Context, watched_kinds: WatchedKinds) -> None:
        self._api = context.api
        self._watched_kinds = watched_kinds
        self._events = context.events.named("garbage-collector-controller")
        self._absent: OrderedDict[_Address, bool] = OrderedDict()
        """The absent owners, and whether an object with the uid exists in another namespace."""

    def all_exist(self, node: GraphNode, links: OwnerLinks) -> bool:
        """Whether all owners are in the caches and not being deleted."""
        for owner in links.owners:
            found = self._cached(node, owner)
            if found is None or owner_links(found).waits_for_dependents:
                return False
        return True

    def recheck_s(self, node: GraphNode, solid: Iterable[BlockingOwner]) -> float | None:
        """When to check again, because an owner that no cache has yet may be deleted without an event."""
        return _UNSEEN_S if any(self._cached(node, owner) is None for owner in solid) else None

    async def owner_state(self, node: GraphNode, owner: BlockingOwner) -> OwnerState:
        kind = self._watched_kinds.kind(owner.api_version, owner.kind)
        if kind is None:
            raise UnknownKind
        if kind.is_namespaced and not node.namespace:
            if self._is_elsewhere(kind, owner):
                self._record_warning(node, owner)
            # This reference never becomes valid, and the object can never be deleted safely.
            raise Undecided(None)
        found = self._cached(node, owner) or await self._live(kind, node, owner)
        if found is None:
            return OwnerState.DANGLING
        return OwnerState.WAITING if owner_links(found).waits_for_dependents else OwnerState.SOLID

    def _cached(self, node: GraphNode, owner: BlockingOwner) -> Item | None:
        kind = self._watched_kinds.kind(owner.api_version, owner.kind)
        if kind is None:
            return None
        return self._watched_kinds.item(kind, node.namespace if kind.is_namespaced else "", owner.name, owner.uid)

    async def _live(self, kind: Kind, node: GraphNode, owner: BlockingOwner) -> Item | None:
        namespace = node.namespace if kind.is_namespaced else ""
        address = (owner.api_version, owner.kind, namespace, owner.name, owner.uid)
        if address not in self._absent:
            try:
                found = await self._api.get(kind, namespace, owner.name)
                if found.uid == owner.uid:
                    return found
            except NotFoundError as error:
                if not error.details.get("name"):
                    # The kind is missing, not the object.
                    raise Undecided(_LOST_KIND_S) from None
            self._absent[address] = kind.is_namespaced and self._is_elsewhere(kind, owner)
            while len(self._absent) > _REMEMBERED:
                self._absent.popitem(last=False)
        if self._absent[address]:
            self._record_warning(node, owner)
        return None

    def _is_elsewhere(self, kind: Kind, owner: BlockingOwner) -> bool:
        return any(item.uid == owner.uid for item in self._watched_kinds.informer(kind) or ())

    def _record_warning(self, node: GraphNode, owner: BlockingOwner) -> None:
        meta = {"name": node.name, "namespace": node.namespace, "uid": node.uid}
        about = {"kind": node.kind.name, "apiVersion": node.kind.api_version, "metadata": meta}
        reference = (
            f"[{owner.api_version}/{owner.kind}, namespace: {node.namespace}, name: {owner.name}, uid: {owner.uid}]"
        )
        words = f'ownerRef {reference} does not exist in namespace "{node.namespace}"'
        self._events.record(about, "OwnerRefInvalidNamespace", words, type_="Warning")
