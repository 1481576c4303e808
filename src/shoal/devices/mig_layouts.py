"""Lists the named MIG layouts of a GPU model, as in the MIG manager's default configuration.

`all-disabled`, `all-enabled`, `all-balanced`, and for each profile `all-` and its name: as many as fit. The names
depend on the GPU: `all-1g.10gb` is seven instances on an A100 of 80 GB and four on one of 40 GB.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

from shoal.data.mig import Layout, Profile, layout

DISABLED, ENABLED, BALANCED = "all-disabled", "all-enabled", "all-balanced"
_ALL = "all-"


class MigSpec(msgspec.Struct, frozen=True):
    """One line of a layout: the selected GPUs and their instances."""

    enabled: bool
    counts: tuple[tuple[str, int], ...] = ()
    devices: Literal["all"] | tuple[int, ...] = "all"
    filters: tuple[str, ...] = ()
    """PCI device ids, `0x20B010DE`; the GPU must have one of them."""


Specs = tuple[MigSpec, ...]


@lru_cache(maxsize=64)
def default_layouts(name: str) -> dict[str, Specs]:
    """Layouts by name, for an entry of data/mig.json; without one, only those without MIG."""
    facts = layout(name) if name else None
    found: dict[str, Specs] = {DISABLED: (MigSpec(enabled=False),)}
    if facts is None:
        return found
    found[ENABLED] = (MigSpec(enabled=True),)
    found[BALANCED] = (MigSpec(enabled=True, counts=_balanced(facts)),)
    for profile in facts.profiles:
        label = _ALL + profile.name.replace("+", ".")
        found[label] = (MigSpec(enabled=True, counts=((profile.name, profile.max),)),)
    return found


def _balanced(facts: Layout) -> tuple[tuple[str, int], ...]:
    """Two of the smallest instances, one of two slices, and one of three if the GPU has that many."""
    wanted = {1: 2, 2: 1} if facts.compute_slices < 7 else {1: 2, 2: 1, 3: 1}
    plain: dict[int, Profile] = {}
    for profile in facts.profiles:
        if profile.name.endswith("gb"):
            best = plain.get(profile.compute)
            plain[profile.compute] = profile if best is None or profile.width < best.width else best
    return tuple((plain[size].name, count) for size, count in wanted.items())
