"""Stores the owner references of objects that have owners or are being deleted; other objects are not stored.

Only keys and uids are stored. The full references are read from the cached object when it is checked, which is rare.
Owners need not be known: dependents are found by the uid of the owner, whether or not an object with it was seen.

Rejected: a node for each object, and virtual nodes for unknown owners, as a graph of the whole cluster. The caches have
all objects already, and can be asked for an owner.
"""

from __future__ import annotations

from sys import intern

import msgspec

from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.embedded.controllers.garbage.references import OwnerLinks


class GraphNode(msgspec.Struct, frozen=True, gc=False, eq=False):
    kind: Kind
    namespace: str
    name: str
    uid: str
    owners: tuple[str, ...]
    """The uids of the owners."""
    blocks: tuple[str, ...]
    """The uids of the owners whose foreground deletion it blocks."""
    waits_for_dependents: bool
    orphans_dependents: bool


class Graph:
    def __init__(self) -> None:
        self._nodes: dict[str, GraphNode] = {}
        self._dependents: dict[str, dict[str, GraphNode]] = {}

    def node(self, uid: str) -> GraphNode | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[GraphNode]:
        return list(self._dependents.get(uid, {}).values())

    def blockers(self, uid: str) -> list[GraphNode]:
        """The dependents that block the deletion. An object never blocks its own deletion."""
        return [node for node in self._dependents.get(uid, {}).values() if uid in node.blocks and node.uid != uid]

    def __len__(self) -> int:
        return len(self._nodes)

    def put(self, kind: Kind, item: Item, links: OwnerLinks) -> GraphNode | None:
        """Stores the links of an object; an object without owners that is not being deleted is not stored."""
        before = self._nodes.get(item.uid)
        if not links.owners and not links.is_terminating:
            self.drop(item.uid)
            return None
        owners = tuple(intern(owner.uid) for owner in links.owners)
        blocks = tuple(intern(owner.uid) for owner in links.owners if owner.block_owner_deletion)
        waits, lets_go = links.waits_for_dependents, links.orphans_dependents
        if before is not None:
            if (owners, blocks, waits, lets_go) == (
                before.owners,
                before.blocks,
                before.waits_for_dependents,
                before.orphans_dependents,
            ):
                return before
            self.drop(item.uid)
        node = GraphNode(kind, item.namespace, item.name, item.uid, owners, blocks, waits, lets_go)
        self._nodes[node.uid] = node
        for owner in owners:
            self._dependents.setdefault(owner, {})[node.uid] = node
        return node

    def drop(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        for owner in dict.fromkeys(node.owners) if node is not None else ():
            named = self._dependents[owner]
            del named[uid]
            if not named:
                del self._dependents[owner]
