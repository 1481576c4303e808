"""Tracks the DRA devices of all pools, and which nodes can use them.

A pool is what the newest generation of its slices says, and only once all of them are there: half a pool may be a
device that is about to become two. What is wrong with a pool (a piece missing, a device named twice) leaves all of it
out. The order of devices is that of their pools' names, then of slices and devices in them, whatever came first; slices
and pools with devices that have to be made ready before a pod is bound come after those without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shoal.api.slices import Reach
from shoal.engine.dra.devices import DeviceFacts, SliceFacts
from shoal.engine.labels import Labels


class PoolDevice:
    """A device of a usable pool. Compared by identity: one per device and version of its pool."""

    __slots__ = ("facts", "id", "pool")

    def __init__(self, pool: str, facts: DeviceFacts) -> None:
        self.id = f"{pool}/{facts.name}"
        self.pool = pool
        self.facts = facts

    @property
    def is_wide(self) -> bool:
        """Whether more than one node may be able to use it."""
        return not self.facts.reach.node_name


class Pools:
    """All slices, and what they come to."""

    def __init__(self, names: Sequence[str], labels: Labels) -> None:
        self._names = names
        self._labels = labels
        self._slices: dict[str, SliceFacts] = {}
        self._of_pool: dict[str, dict[str, SliceFacts]] = {}
        self._devices: dict[str, dict[str, PoolDevice]] = {}
        self._at: dict[str, list[PoolDevice]] = {}
        self._wide: dict[Reach, list[PoolDevice]] = {}
        self._is_indexed = True
        self._unfinished: dict[str, tuple[Reach, ...]] = {}
        self._late: set[str] = set()
        """Pools with devices that have to be made ready."""
        self._counters: dict[str, Mapping[tuple[str, str], int]] = {}

    def put(self, piece: SliceFacts) -> bool:
        """A slice appeared or changed; False when it says nothing new."""
        before = self._slices.get(piece.name)
        if before == piece:
            return False
        if before is not None and before.pool_key != piece.pool_key:
            self.drop(piece.name)
        self._slices[piece.name] = piece
        self._of_pool.setdefault(piece.pool_key, {})[piece.name] = piece
        self._read(piece.pool_key)
        return True

    def drop(self, name: str) -> bool:
        """A slice was deleted; False when there was none."""
        piece = self._slices.pop(name, None)
        if piece is None:
            return False
        pieces = self._of_pool[piece.pool_key]
        del pieces[name]
        if not pieces:
            del self._of_pool[piece.pool_key]
        self._read(piece.pool_key)
        return True

    def find(self, device: str) -> PoolDevice | None:
        """A device by its full name."""
        return self._devices.get(device.rpartition("/")[0], {}).get(device)

    def counters(self, pool: str) -> Mapping[tuple[str, str], int]:
        """(counter set, counter) -> amount when nothing is taken."""
        return self._counters.get(pool, {})

    def on(self, row: int) -> list[PoolDevice]:
        """The devices that the node in a row can use."""
        if not self._is_indexed:
            self._index()
        own = self._at.get(self._names[row], [])
        if not self._wide:
            return own
        found = own + [each for reach, devices in self._wide.items() if self.reaches(reach, row) for each in devices]
        return sorted(found, key=lambda device: device.pool in self._late) if self._late else found

    def is_unfinished(self, row: int) -> bool:
        """Whether some pool that the node may use is not complete, so that its devices are not all known."""
        return any(self.reaches(reach, row) for reaches in self._unfinished.values() for reach in reaches)

    def reaches(self, reach: Reach, row: int) -> bool:
        name = self._names[row]
        if reach.node_name:
            return reach.node_name == name
        return reach.all_nodes or (
            reach.node_selector is not None and reach.node_selector.matches(name, self._labels.of(row))
        )

    def _read(self, pool: str) -> None:
        pieces = sorted(self._newest(pool), key=lambda piece: (_is_late(piece), piece.name))
        self._late.discard(pool)
        self._devices.pop(pool, None)
        self._counters.pop(pool, None)
        self._unfinished.pop(pool, None)
        if pieces and len(pieces) != pieces[0].pieces:
            self._unfinished[pool] = tuple(piece.reach for piece in pieces)
        elif pieces:
            devices = [PoolDevice(pool, facts) for piece in pieces for facts in piece.devices]
            by_id = {device.id: device for device in devices}
            if len(by_id) == len(devices):
                self._devices[pool] = by_id
                if _is_late(pieces[-1]):
                    self._late.add(pool)
                self._counters[pool] = dict(_counters(pieces))
        # Slices come by the thousand when a fleet is read: the index is built at the first use.
        self._is_indexed = False

    def _newest(self, pool: str) -> list[SliceFacts]:
        pieces = self._of_pool.get(pool, {}).values()
        newest = max((piece.generation for piece in pieces), default=0)
        return [piece for piece in pieces if piece.generation == newest]

    def _index(self) -> None:
        self._at = {}
        self._wide = {}
        for pool in sorted(self._devices, key=lambda pool: (pool in self._late, pool)):
            for device in self._devices[pool].values():
                reach = device.facts.reach
                if device.is_wide:
                    self._wide.setdefault(reach, []).append(device)
                else:
                    self._at.setdefault(reach.node_name, []).append(device)
        self._is_indexed = True


def _is_late(piece: SliceFacts) -> bool:
    return any(facts.binding is not None and facts.binding.wanted for facts in piece.devices)


def _counters(pieces: list[SliceFacts]) -> Iterator[tuple[tuple[str, str], int]]:
    for piece in pieces:
        for counter_set, counters in piece.counters.items():
            for name, amount in counters.items():
                yield (counter_set, name), amount
