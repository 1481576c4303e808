"""Checks MIG layouts for a GPU model: whether a named one exists there, and whether instances fit on one GPU."""

from __future__ import annotations

import msgspec

from shoal.data.gpus import Model
from shoal.data.mig import Layout
from shoal.devices.mig_instances import fits
from shoal.devices.mig_layouts import default_layouts


class Problem(msgspec.Struct, frozen=True):
    what: str
    fix: str


def layout_problem(name: str, model: Model, gpus: int) -> Problem | None:
    """Why machines with these GPUs cannot start with the layout, with the possible ones."""
    known = default_layouts(model.mig)
    if name in known:
        return None
    possible = ", ".join(known) if model.mig else "none, it has no MIG"
    return Problem(f"the MIG layout {name} is not possible on {gpus} x {model.name}", f"possible: {possible}")


def counts_problem(counts: tuple[tuple[str, int], ...], facts: Layout) -> Problem | None:
    """Why one GPU cannot have these instances."""
    names = ", ".join(f"{profile.name} (at most {profile.max})" for profile in facts.profiles)
    for name, count in counts:
        profile = facts.profile(name)
        if profile is None:
            return Problem(f"{facts.name} has no MIG profile {name}", f"it has {names}")
        if count > profile.max:
            return Problem(f"{count} x {name} do not fit on {facts.name}", f"at most {profile.max} do")
    if not fits(facts, counts):
        wanted = " and ".join(f"{count} x {name}" for name, count in counts)
        return Problem(f"{wanted} do not fit together on {facts.name}", f"it has {names}")
    return None
