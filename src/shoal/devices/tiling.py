"""MIG instances on the memory slices of one GPU: which places are free, which tile goes where, what fits together.

The state of a device is the set of its free slices, as a bit mask, and whether the media engines are free, as one bit
more. A tile is the mask that it takes at one of its legal starts. Everything is a look-up by mask: a GPU of eight
slices has 512 states, and a fleet is in few of them.

Free slices that do not lie right are worth nothing, so a tile goes where it spoils least: where the legal places that
are left, weighed by their width, fall least. That choice is greedy; where it fails for several tiles, all ways to
share them out are tried, so the answer "does not fit" is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

from shoal.data.mig import Layout, Profile, layout

HOLDERS_BITS = 4
"""A slice counts its holders in so many bits: facts may contradict each other, and undoing must be exact even then."""
_MOST_SLICES = 14

Tile = tuple[int, int]
"""Device, and the mask that is taken there."""
Counts = tuple[int, ...]


class Tiling:
    """The legal places on one kind of GPU."""

    def __init__(self, facts: Layout) -> None:
        self.facts = facts
        self._media = 1 << facts.memory_slices
        self.empty = self._media | (self._media - 1)
        """The state of a GPU without instances."""

    @cached_property
    def _weights(self) -> list[tuple[int, int]]:
        """(mask, width) of every place, for judging what a state is still good for."""
        return [(mask, p.width) for p in self.facts.profiles if not p.holds_media() for mask in self.places(p)]

    def profile(self, name: str) -> Profile | None:
        """By its spelling in resource names."""
        return self.facts.profile(name)

    def places(self, profile: Profile) -> tuple[int, ...]:
        """Masks of the profile's legal places, by start."""
        media = self._media if profile.holds_media() else 0
        return tuple(profile.slices(start) | media for start in profile.starts)

    @lru_cache(maxsize=65536)  # noqa: B019 - there are a dozen layouts, and they live as long as the program
    def room(self, name: str, free: int) -> int:
        """How many tiles of one profile still fit. Places of one profile side by side: taking the first is best."""
        profile = self.profile(name)
        count = 0
        for mask in self.places(profile) if profile is not None else ():
            if mask & free == mask:
                free &= ~mask
                count += 1
        return count

    @lru_cache(maxsize=65536)  # noqa: B019
    def worth(self, free: int) -> int:
        """What the free slices are good for."""
        return sum(width for mask, width in self._weights if mask & free == mask)

    @lru_cache(maxsize=65536)  # noqa: B019
    def best(self, name: str, free: int) -> tuple[int, int] | None:
        """(loss of worth, mask) of the tile's best place on a device, the first of equals."""
        profile = self.profile(name)
        if profile is None:
            return None
        before = self.worth(free)
        losses = [(before - self.worth(free & ~mask), mask) for mask in self.places(profile) if mask & free == mask]
        return min(losses) if losses else None

    def place(self, states: Sequence[tuple[int, int]], tiles: Sequence[tuple[str, int]]) -> list[Tile] | None:
        """Places for all the tiles on devices given as (device, free mask), or None when there are none."""
        ordered = sorted(tiles, key=lambda tile: (-self._width(tile[0]), tile[0]))
        return self._greedy(dict(states), ordered) or self._exact(states, ordered)

    def fits(self, states: Sequence[int], tiles: Sequence[tuple[str, int]]) -> bool:
        """Whether devices in these states hold all the tiles."""
        return self._fits(tuple(sorted(states)), tuple(tiles))

    @lru_cache(maxsize=65536)  # noqa: B019
    def _fits(self, states: tuple[int, ...], tiles: tuple[tuple[str, int], ...]) -> bool:
        return self.place(list(enumerate(states)), tiles) is not None

    def _width(self, name: str) -> int:
        profile = self.profile(name)
        return profile.width if profile is not None else 0

    def _greedy(self, free: dict[int, int], tiles: Sequence[tuple[str, int]]) -> list[Tile] | None:
        placed: list[Tile] = []
        for name, count in tiles:
            for _ in range(count):
                # Of equal losses the device with least free, so that empty devices stay empty.
                choices = [
                    (best[0], state.bit_count(), device, best[1])
                    for device, state in free.items()
                    if (best := self.best(name, state)) is not None
                ]
                if not choices:
                    return None
                _, _, device, mask = min(choices)
                free[device] &= ~mask
                placed.append((device, mask))
        return placed

    def _exact(self, states: Sequence[tuple[int, int]], tiles: Sequence[tuple[str, int]]) -> list[Tile] | None:
        """Device by device, every way to relieve the rest; ways that leave more of everything are dropped."""
        names = tuple(name for name, _ in tiles)
        ways: dict[Counts, list[Tile]] = {tuple(count for _, count in tiles): []}
        for device, free in states:
            reached: dict[Counts, list[Tile]] = {}
            for missing, placed in ways.items():
                for taken, masks in self.ways(names, free).items():
                    left = tuple(max(m - t, 0) for m, t in zip(missing, taken, strict=True))
                    if all(t <= m for m, t in zip(missing, taken, strict=True)) and left not in reached:
                        reached[left] = [*placed, *((device, mask) for mask in masks)]
            ways = {left: placed for left, placed in reached.items() if not _is_beaten(left, reached)}
            if (done := ways.get((0,) * len(names))) is not None:
                return done
        return None

    @lru_cache(maxsize=4096)  # noqa: B019
    def ways(self, names: tuple[str, ...], free: int) -> dict[Counts, tuple[int, ...]]:
        """Every number of tiles of each profile that one device holds, and their masks."""
        ways: dict[Counts, tuple[int, ...]] = {(0,) * len(names): ()}
        for index, name in enumerate(names):
            profile = self.profile(name)
            for mask in self.places(profile) if profile is not None else ():
                if mask & free != mask:
                    continue
                for taken, masks in self.ways(names, free & ~mask).items():
                    more = (*taken[:index], taken[index] + 1, *taken[index + 1 :])
                    ways.setdefault(more, (mask, *masks))
        return ways


def _is_beaten(left: Counts, others: dict[Counts, list[Tile]]) -> bool:
    return any(other != left and all(o <= mine for o, mine in zip(other, left, strict=True)) for other in others)


@lru_cache(maxsize=64)
def tiling(name: str) -> Tiling:
    """The tiling of a layout of `data.mig` by its name."""
    facts = layout(name)
    if facts is None:
        raise KeyError(name)
    return Tiling(facts)


@lru_cache(maxsize=65536)
def occupancy(mask: int) -> int:
    """A mask as an amount of the SLICES plane: one holder more on each of its slices."""
    return sum(1 << (HOLDERS_BITS * bit) for bit in range(_MOST_SLICES) if mask >> bit & 1)


@lru_cache(maxsize=65536)
def holders(taken: int) -> int:
    """How many slices all holders of a device ask for together; a slice with two holders counts twice."""
    return sum(taken >> (HOLDERS_BITS * bit) & ((1 << HOLDERS_BITS) - 1) for bit in range(_MOST_SLICES))


def is_held_twice(taken: int) -> bool:
    """Whether some slice of a device has several holders."""
    return any(taken >> (HOLDERS_BITS * bit) & ((1 << HOLDERS_BITS) - 2) for bit in range(_MOST_SLICES))


@lru_cache(maxsize=65536)
def free_mask(taken: int, empty: int) -> int:
    """The state of a device of which so much is taken."""
    return sum(
        1 << bit for bit in range(empty.bit_length()) if not taken >> (HOLDERS_BITS * bit) & ((1 << HOLDERS_BITS) - 1)
    )
