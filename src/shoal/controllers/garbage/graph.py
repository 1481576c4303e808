"""Who names whom as an owner, among the objects that have owners or are ending; all others cost nothing here.

Only addresses and uids are kept. The full references are read again from the cached object when it is looked at,
which happens to few. Owners need not be known: dependents are found by the uid that they name, whether or not an
object of that uid was ever seen.

Rejected: a node for every object, virtual ones for owners that were only named, as a graph of the whole cluster. The
caches have all objects already, and can be asked whether an owner is there.
"""

from __future__ import annotations

from sys import intern

import msgspec

from shoal.controllers.garbage.references import Ties
from shoal.store.live.item import Item
from shoal.store.live.kind import Kind


class Node(msgspec.Struct, frozen=True, gc=False, eq=False):
    kind: Kind
    namespace: str
    name: str
    uid: str
    owners: tuple[str, ...]
    """Uids."""
    blocks: tuple[str, ...]
    """Uids of those owners that must not go before it, when they are deleted in the foreground."""
    waits_for_dependents: bool
    lets_dependents_go: bool


class Graph:
    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, Node]] = {}

    def node(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        return list(self._dependents.get(uid, {}).values())

    def blockers(self, uid: str) -> list[Node]:
        """Nothing blocks itself: what names itself as its owner would never go."""
        return [node for node in self._dependents.get(uid, {}).values() if uid in node.blocks and node.uid != uid]

    def __len__(self) -> int:
        return len(self._nodes)

    def put(self, kind: Kind, item: Item, tied: Ties) -> Node | None:
        """Take what an object says of itself; nothing is kept of one that neither has owners nor is ending."""
        before = self._nodes.get(item.uid)
        if not tied.owners and not tied.is_ending:
            self.drop(item.uid)
            return None
        owners = tuple(intern(owner.uid) for owner in tied.owners)
        blocks = tuple(intern(owner.uid) for owner in tied.owners if owner.block_owner_deletion)
        waits, lets_go = tied.waits_for_dependents, tied.lets_dependents_go
        if before is not None:
            if (owners, blocks, waits, lets_go) == (
                before.owners,
                before.blocks,
                before.waits_for_dependents,
                before.lets_dependents_go,
            ):
                return before
            self.drop(item.uid)
        node = Node(kind, item.namespace, item.name, item.uid, owners, blocks, waits, lets_go)
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
