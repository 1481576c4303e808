"""The share of a GPU that a pod holds: a MIG instance, a replica, a part limited by MPS or HAMi.

A MIG instance is counted by its memory slices: `3g.40gb` of an H100 is 4 of 8. By compute it is 3 of 7. A replica of
time-slicing is one of its number. A limited share is the larger one of its compute and memory limits.
"""

from __future__ import annotations

from shoal.cost.prices.price_file import MigBasis
from shoal.cost.records import FULL_SHARE
from shoal.data.mig import Layout


def mig_share(layout: Layout, profile: str, basis: MigBasis = "memory") -> int | None:
    """None for a profile that the layout does not have."""
    found = layout.profile(profile)
    if found is None:
        return None
    if basis == "compute":
        return FULL_SHARE * found.compute // layout.compute_slices
    return FULL_SHARE * found.width // layout.memory_slices


def mig_shares(layout: Layout | None, profile: str, unknown: int) -> tuple[int, int]:
    """By memory and by compute; `unknown` of an instance whose profile is not known."""
    if layout is None or layout.profile(profile) is None:
        return unknown, unknown
    return mig_share(layout, profile) or unknown, mig_share(layout, profile, "compute") or unknown


def replica_share(replicas: int) -> int:
    return FULL_SHARE // max(1, replicas)


def limited_share(core_percent: int, memory_mib: int, device_mib: int) -> int:
    """A limit of 0 means that there is none."""
    by_core = FULL_SHARE * min(100, core_percent) // 100
    by_memory = FULL_SHARE * min(memory_mib, device_mib) // device_mib if device_mib > 0 else 0
    return max(by_core, by_memory) or FULL_SHARE
