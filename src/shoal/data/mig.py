"""MIG profiles by GPU model, and the positions at which each instance may be placed.

A name such as `1g.10gb` means nothing by itself: on one GPU it takes one memory slice of eight, on another
two. All questions go through the layout of the GPU at hand. Placements are ranges on an axis of memory
slices, eight on most parts and twelve or four on others; a set of instances fits if the ranges do not
overlap, no profile exceeds its `max`, and at most one instance holds the media engines.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from shoal.data.facts import Fact, load, parse, require, require_unique

FILE = "mig.json"
RESOURCE_PREFIX = "nvidia.com/mig-"

_NAME = re.compile(r"(?P<compute>[0-9]+)g\.[0-9]+gb(?P<attribute>\+me|\+me\.all|\+gfx|-me)?")
_HOLDS_MEDIA = ("+me", "+me.all")

Trust = Literal["verified", "partly", "inferred", "unknown"]


class Engines(Fact, frozen=True, array_like=True):
    copy: int | None
    decode: int | None
    encode: int | None
    jpeg: int | None
    optical_flow: int | None


class Profile(Fact, frozen=True):
    name: str
    id: int
    enum: int
    compute: int
    width: int
    starts: tuple[int, ...]
    max: int
    memory_mib: int | None
    sm: int | None
    engines: Engines

    @property
    def resource(self) -> str:
        """The extended resource of this profile; a plus sign is not allowed there."""
        return RESOURCE_PREFIX + self.name.replace("+", ".")

    def holds_media(self) -> bool:
        return self.name.endswith(_HOLDS_MEDIA)

    def slices(self, start: int) -> int:
        """The memory slices an instance at `start` occupies, as a bit mask."""
        return ((1 << self.width) - 1) << start


class TrustIn(Fact, frozen=True):
    placements: Trust
    memory: Trust
    engines: Trust


class Layout(Fact, frozen=True):
    name: str
    products: tuple[str, ...]
    compute_capability: str
    pci: tuple[str, ...]
    memory_mib: int | None
    memory_slices: int
    compute_slices: int
    trust: TrustIn
    sources: tuple[str, ...]
    profiles: tuple[Profile, ...]
    note: str = ""
    early_names: tuple[tuple[str, str], ...] = ()
    """Names of profiles on early boards, each with the usual name."""

    def profile(self, name: str) -> Profile | None:
        """By name, by the name's spelling in resources (`1g.5gb.me`), or by the whole resource."""
        wanted = name.removeprefix(RESOURCE_PREFIX)
        return next((p for p in self.profiles if wanted in {p.name, p.name.replace("+", ".")}), None)


class _MigFile(Fact, frozen=True):
    about: tuple[str, ...]
    sources: dict[str, str]
    compute_instances: dict[int, dict[int, int]]
    layouts: tuple[Layout, ...]


def layouts() -> tuple[Layout, ...]:
    return _facts().layouts


def layout(name: str) -> Layout | None:
    return next((found for found in layouts() if found.name == name), None)


def layout_of_product(product: str) -> Layout | None:
    """By product label without vendor and suffixes; the longest of our names that begins it word for word wins."""
    wanted = product.upper() + "-"
    matches = [
        (len(name), found) for found in layouts() for name in found.products if wanted.startswith(name.upper() + "-")
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def compute_instances(compute_slices: int) -> dict[int, int]:
    """How many compute instances of each size an instance with so many compute slices can be divided into."""
    return dict(_facts().compute_instances.get(compute_slices, {}))


def parse_layouts(data: bytes) -> tuple[Layout, ...]:
    """Read and check; for tests, and for facts in files of the user."""
    return _checked(parse(data, FILE, _MigFile)).layouts


@cache
def _facts() -> _MigFile:
    return _checked(load(FILE, _MigFile))


def _checked(facts: _MigFile) -> _MigFile:
    require_unique((one.name for one in facts.layouts), FILE, "layout")
    require_unique((p.upper() for one in facts.layouts for p in one.products), FILE, "product")
    for one in facts.layouts:
        _check_layout(one, facts.sources)
    for slices, parts in facts.compute_instances.items():
        for size, count in parts.items():
            whole = size * count <= slices
            require(whole, FILE, f"compute_instances {slices}", f"{count} parts of {size} slices do not fit")
    return facts


def _check_layout(one: Layout, sources: dict[str, str]) -> None:
    require_unique(((one.name, p.name) for p in one.profiles), FILE, "profile")
    require_unique(((one.name, p.id) for p in one.profiles), FILE, "id")
    require_unique(((one.name, p.enum) for p in one.profiles), FILE, "enum")
    require(one.products, FILE, one.name, "no products")
    require(set(one.sources) <= sources.keys(), FILE, one.name, "a source that is not listed")
    require(any(p.width == one.memory_slices for p in one.profiles), FILE, one.name, "no profile takes the whole GPU")
    for profile in one.profiles:
        _check_profile(profile, one)


def _check_profile(profile: Profile, one: Layout) -> None:
    entry = f"{one.name} {profile.name}"
    match = _NAME.fullmatch(profile.name)
    require(match is not None, FILE, entry, "the name is not like 1g.5gb, 1g.5gb+me, 1g.5gb+gfx or 1g.5gb-me")
    named = int(match["compute"]) if match is not None else 0
    require(named == profile.compute, FILE, entry, "name and compute slices disagree")
    require(profile.starts, FILE, entry, "no start")
    require(profile.starts == tuple(sorted(set(profile.starts))), FILE, entry, "starts are not in order")
    inside = profile.starts[0] >= 0 and profile.starts[-1] + profile.width <= one.memory_slices
    require(profile.width > 0 and inside, FILE, entry, "a placement lies outside the memory slices")
    reachable = _disjoint(profile)
    enough = profile.max <= reachable if profile.holds_media() else profile.max == reachable
    require(profile.max > 0 and enough, FILE, entry, f"max is {profile.max}, placements allow {reachable}")
    require(profile.max * profile.compute <= one.compute_slices, FILE, entry, "max exceeds the compute slices")
    known = profile.memory_mib is not None and one.memory_mib is not None
    fits = not known or (profile.memory_mib or 0) * profile.max <= (one.memory_mib or 0)
    require(fits, FILE, entry, "max exceeds the memory of the GPU")


def _disjoint(profile: Profile) -> int:
    """How many placements fit side by side; taking the leftmost each time is the best there is."""
    count, free = 0, 0
    for start in profile.starts:
        if start >= free:
            count, free = count + 1, start + profile.width
    return count
