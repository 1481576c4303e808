"""Creates the MIG instances of simulated GPUs, with ids that depend only on node name, GPU, profile and start."""

from __future__ import annotations

from shoal.data.mig import Layout
from shoal.devices.mig_instances import Cut, places
from shoal.devices.mig_layouts import Counts
from shoal.embedded.machines.installed_gpus import identity


def cut(node: str, gpu: int, facts: Layout, counts: Counts, memory_mib: int) -> tuple[Cut, ...] | None:
    """The instances by start, or None if they do not fit."""
    placed = places(facts, counts)
    if placed is None:
        return None
    return tuple(new_cut(node, gpu, facts, place, memory_mib) for place in placed)


def new_cut(node: str, gpu: int, facts: Layout, place: tuple[str, int], memory_mib: int) -> Cut:
    """`place`: profile and first memory slice."""
    name, start = place
    profile = facts.profile(name)
    assert profile is not None, name  # noqa: S101 - positions belong to known profiles only
    parts = facts.memory_slices // profile.width
    part_mib = memory_mib * profile.width // facts.memory_slices
    return Cut(
        gpu=gpu,
        profile=profile,
        start=start,
        instance=parts - 1 + start // profile.width,
        uuid=f"MIG-{identity(node, f'mig/{gpu}/{profile.name}/{start}')}",
        memory_mib=min(profile.memory_mib or part_mib, memory_mib),
    )
