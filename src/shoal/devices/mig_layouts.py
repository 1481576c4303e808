"""Generates the named MIG layouts of GPUs, as mig-parted and the MIG manager generate them from the hardware.

`all-disabled`, `all-enabled`, `all-balanced`, and for each profile `all-` and its name: as many as fit. The names
depend on the GPU: `all-1g.10gb` is seven instances on an A100 of 80 GB and four on one of 40 GB.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from shoal.data.mig import layout
from shoal.devices.mig_profile_names import parse_profile

DISABLED, ENABLED, BALANCED = "all-disabled", "all-enabled", "all-balanced"
_ALL = "all-"
_BALANCED_COUNTS = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}
"""Instances of each size in all-balanced, by the slices of the GPU's largest instance."""

Counts = tuple[tuple[str, int], ...]


class MigSpec(msgspec.Struct, frozen=True):
    """One line of a layout: the selected GPUs and their instances."""

    enabled: bool
    counts: Counts = ()
    devices: Literal["all"] | tuple[int, ...] = "all"
    filters: tuple[str, ...] = ()
    """PCI device ids, `0x20B010DE`; the GPU must have one of them."""

    def selects(self, index: int) -> bool:
        return self.devices == "all" or index in self.devices


Specs = tuple[MigSpec, ...]


class MigOffer(msgspec.Struct, frozen=True):
    """The profiles that one kind of GPU offers."""

    pci_id: str
    profiles: Counts
    """Each with the most instances of it on one GPU."""


def config_name(profile: str) -> str:
    """The name of the layout with as many instances of the profile as fit; names of layouts have no plus sign."""
    return _ALL + profile.replace("+", ".")


def generated_layouts(offers: Sequence[MigOffer]) -> dict[str, Specs]:
    """The layouts of a node with these kinds of GPUs. With several kinds, each line names the kinds that it is for."""
    found: dict[str, Specs] = {DISABLED: (MigSpec(enabled=False),), ENABLED: (MigSpec(enabled=True),)}
    balanced = tuple(
        MigSpec(enabled=True, counts=counts, filters=(offer.pci_id,) if len(offers) > 1 else ())
        for offer in sorted(offers, key=lambda one: one.pci_id)
        if (counts := balanced_counts(offer.profiles))
    )
    if balanced:
        found[BALANCED] = balanced
    for profile in dict.fromkeys(name for offer in offers for name, _ in offer.profiles):
        found[config_name(profile)] = tuple(_as_many_as_fit(profile, offers))
    return found


def _as_many_as_fit(profile: str, offers: Sequence[MigOffer]) -> list[MigSpec]:
    kinds: dict[int, list[str]] = {}
    for offer in offers:
        for name, most in offer.profiles:
            if name == profile:
                kinds.setdefault(most, []).append(offer.pci_id)
    return [
        MigSpec(enabled=True, counts=((profile, most),), filters=tuple(sorted(ids)) if len(offers) > 1 else ())
        for most, ids in sorted(kinds.items())
    ]


@lru_cache(maxsize=64)
def default_layouts(name: str) -> dict[str, Specs]:
    """Layouts by name, for an entry of data/mig.json; without one, only those without MIG."""
    facts = layout(name) if name else None
    if facts is None:
        return {DISABLED: (MigSpec(enabled=False),)}
    return generated_layouts([MigOffer("", tuple((one.name, one.max) for one in facts.profiles))])


def balanced_counts(profiles: Counts) -> Counts:
    """Instances of several sizes that fill a GPU; none where the GPU lacks one of the sizes.

    Of profiles of one size, the one with the most instances takes the least memory.
    """
    plain: dict[int, tuple[str, int]] = {}
    for name, most in profiles:
        profile = parse_profile(name)
        if profile.is_plain and most > plain.get(profile.slices, ("", 0))[1]:
            plain[profile.slices] = name, most
    wanted = _BALANCED_COUNTS.get(max(plain, default=0), {})
    if not wanted.keys() <= plain.keys():
        return ()
    return tuple((plain[size][0], count) for size, count in wanted.items())
