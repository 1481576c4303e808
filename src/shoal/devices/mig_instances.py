"""Computes the positions of the MIG instances of a layout on one GPU.

The engine's own tiling chooses the positions, so that a node can create every layout that the scheduler expects to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from shoal.data.mig import Layout, Profile
from shoal.devices.mig_layouts import Counts
from shoal.devices.tiling import Tiling, tiling


class Cut(msgspec.Struct, frozen=True):
    """A MIG instance."""

    gpu: int
    profile: Profile
    start: int
    """Its first memory slice."""
    instance: int
    """The number of the GPU instance in nvidia-smi and DCGM."""
    uuid: str
    memory_mib: int


class Gpu(msgspec.Struct, frozen=True):
    """The current MIG layout of one GPU."""

    is_mig: bool = False
    cuts: tuple[Cut, ...] = ()


def fits(facts: Layout, counts: Counts) -> bool:
    return places(facts, counts) is not None


@lru_cache(maxsize=1024)
def places(facts: Layout, counts: Counts) -> tuple[tuple[str, int], ...] | None:
    """Profile and first memory slice of each instance, by start; None if they do not fit."""
    tiles = tiling(facts.name)
    return named_places(tiles, tiles.empty, counts)


def named_places(tiles: Tiling, free: int, counts: Counts) -> tuple[tuple[str, int], ...] | None:
    """The same on a GPU of which these slices are free."""
    wanted = tuple((name, count) for name, count in counts if count)
    profiles = {name: tiles.facts.profile(name) for name, _ in wanted}
    known = {name: profile for name, profile in profiles.items() if profile is not None}
    if len(known) < len(profiles) or any(count > known[name].max for name, count in wanted):
        return None
    placed = tiles.place([(0, free)], wanted) if wanted else []
    return None if placed is None else tuple(_named(tiles, [mask for _, mask in placed], wanted, known))


@lru_cache(maxsize=64)
def possible_counts(layout: str) -> tuple[Counts, ...]:
    """Every set of instances that one GPU can have, none included."""
    tiles = tiling(layout)
    names = tuple(profile.name for profile in tiles.facts.profiles)
    return tuple(
        tuple(sorted((name, count) for name, count in zip(names, counts, strict=True) if count))
        for counts in tiles.ways(names, tiles.empty)
    )


def _named(tiles: Tiling, masks: Sequence[int], wanted: Counts, profiles: dict[str, Profile]) -> list[tuple[str, int]]:
    """Assigns the masks of the tiling to instances.

    Of profiles with equal width, one has a subset of the other's starts; the profile with fewer starts is assigned
    first.
    """
    left = set(masks)
    found = []
    for name, count in sorted(wanted, key=lambda one: (len(profiles[one[0]].starts), one[0])):
        profile = profiles[name]
        places = [one for one in zip(tiles.places(profile), profile.starts, strict=True) if one[0] in left]
        for mask, start in places[:count]:
            left.remove(mask)
            found.append((name, start))
    return sorted(found, key=lambda one: one[1])
