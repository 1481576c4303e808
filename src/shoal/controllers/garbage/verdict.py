"""What becomes of an object, from what has become of its owners: values in, a value out.

An owner is *solid* while it is there, *waiting* while it is deleted in the foreground, *dangling* when it is gone (or
never was). One solid owner keeps the object, and the references to the others are taken from it. Without one it goes:
in the foreground if a waiting owner must not go before all that is below it, else as its own finalizers ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

import msgspec

from shoal.controllers.garbage.references import FOREGROUND, ORPHAN, Owner, Ties

Policy = Literal["Background", "Foreground", "Orphan"]


class Standing(Enum):
    SOLID = "solid"
    WAITING = "waiting"
    DANGLING = "dangling"


class Keep(msgspec.Struct, frozen=True):
    """`without`: the references that lead nowhere, or to an owner on its way out."""

    without: tuple[Owner, ...] = ()


class Delete(msgspec.Struct, frozen=True):
    policy: Policy
    unblock: bool = False
    """First let its owners go before it: it stands in a circle of objects that wait for each other."""


def verdict(tied: Ties, standings: Mapping[Owner, Standing], *, has_dependents: bool, in_circle: bool) -> Keep | Delete:
    """`in_circle`: one of its own dependents is itself being deleted in the foreground."""
    found = set(standings.values())
    if Standing.SOLID in found or not found:
        return Keep(tuple(owner for owner, standing in standings.items() if standing is not Standing.SOLID))
    if Standing.WAITING in found and has_dependents:
        return Delete("Foreground", unblock=in_circle)
    return Delete(_asked(tied.finalizers or ()))


def _asked(finalizers: Sequence[str]) -> Policy:
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
