"""Indexes resource slices by pool and by node, for look-ups of single devices."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.slices import Reach
from shoal.engine.dra.devices import Binding, DeviceFacts, SliceFacts, pool_of
from shoal.engine.dra.requests import Picks


class KnownPools:
    def __init__(self) -> None:
        self._pieces: dict[str, SliceFacts] = {}
        self._of_pool: dict[str, dict[str, SliceFacts]] = {}
        self._of_node: dict[str, dict[str, SliceFacts]] = {}

    def get(self, name: str) -> SliceFacts | None:
        return self._pieces.get(name)

    def put(self, name: str, facts: SliceFacts | None) -> bool:
        """Set or remove the slice of that name; returns whether it changed."""
        known = self._pieces.get(name)
        if facts == known:
            return False
        if known is not None:
            del self._pieces[name], self._of_pool[known.pool_key][name]
            self._of_node.get(known.reach.node_name, {}).pop(name, None)
        if facts is not None:
            self._pieces[name] = facts
            self._of_pool.setdefault(facts.pool_key, {})[name] = facts
            if facts.reach.node_name:
                self._of_node.setdefault(facts.reach.node_name, {})[name] = facts
        return True

    def on(self, node: str) -> list[SliceFacts]:
        """Slices of one node."""
        return list(self._of_node.get(node, {}).values())

    def reach(self, picks: Picks) -> list[Reach]:
        """The nodes on which these devices can be used."""
        return list(dict.fromkeys(each.reach for pick in picks for each in self._named(pick.device)))

    def binding(self, device: str) -> Binding | None:
        """The binding conditions of the device."""
        return next((each.binding for each in self._named(device)), None)

    def is_shared(self, device: str) -> bool:
        """Whether several claims may use it."""
        return any(each.shared for each in self._named(device))

    def _named(self, device: str) -> Iterator[DeviceFacts]:
        """The device in the newest slices of its pool."""
        pieces = self._of_pool.get(pool_of(device), {}).values()
        newest = max((piece.generation for piece in pieces), default=0)
        for piece in pieces:
            if piece.generation == newest:
                yield from (each for each in piece.devices if f"{piece.pool_key}/{each.name}" == device)
