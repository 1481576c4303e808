"""Decides what happens to an object, from the states of its owners: a pure function.

An owner is *solid* while it exists, *waiting* while it is deleted in the foreground, and *dangling* when it does not
exist. One solid owner keeps the object, and the references to the other owners are removed. Without a solid owner the
object is deleted: in the foreground if a waiting owner must be deleted after all its dependents, else as its own
finalizers require.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

import msgspec

from shoal.embedded.controllers.garbage.references import FOREGROUND, ORPHAN, BlockingOwner, OwnerLinks

Policy = Literal["Background", "Foreground", "Orphan"]


class OwnerState(Enum):
    SOLID = "solid"
    WAITING = "waiting"
    DANGLING = "dangling"


class KeepObject(msgspec.Struct, frozen=True):
    """`without`: the references to owners that do not exist or are being deleted."""

    without: tuple[BlockingOwner, ...] = ()


class DeleteObject(msgspec.Struct, frozen=True):
    policy: Policy
    unblock: bool = False
    """First unblock its owners, because the objects form a cycle of waiting deletions."""


def decide(
    links: OwnerLinks, owner_states: Mapping[BlockingOwner, OwnerState], *, has_dependents: bool, in_cycle: bool
) -> KeepObject | DeleteObject:
    """`in_cycle`: whether one of its dependents is itself being deleted in the foreground."""
    found = set(owner_states.values())
    if OwnerState.SOLID in found or not found:
        return KeepObject(
            tuple(owner for owner, owner_state in owner_states.items() if owner_state is not OwnerState.SOLID)
        )
    if OwnerState.WAITING in found and has_dependents:
        return DeleteObject("Foreground", unblock=in_cycle)
    return DeleteObject(_asked(links.finalizers or ()))


def _asked(finalizers: Sequence[str]) -> Policy:
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
