"""Plans how a node gets the devices of a claim where its MIG layout may change for claims.

A claim for an instance that does not exist needs MIG mode and the place of the instance; a claim for a whole GPU needs
the GPU undivided. Guarantee: an instance or a GPU in use stays as it is, and the claim is refused with the user named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from shoal.devices.claimable_devices import instance_name, minor_of
from shoal.devices.mig_demand import WantedPlace, steps_on_gpu
from shoal.devices.mig_layout_checks import Problem
from shoal.devices.mig_plan import MigStep, PresentGpu
from shoal.devices.port import InstalledGpu
from shoal.devices.resource_slices import layout_of_gpu

_WAIT = "it can be prepared when that work has ended"


class ClaimPlace(msgspec.Struct, frozen=True):
    gpu: int
    """Its index."""
    profile: str = ""
    """Of the instance; empty: the whole GPU."""
    start: int = 0


def places_of(gpus: Sequence[InstalledGpu]) -> dict[str, ClaimPlace]:
    """Each GPU whose model has MIG layouts, and all instances that it can have, by the names of the devices."""
    found: dict[str, ClaimPlace] = {}
    for gpu in gpus:
        layout = layout_of_gpu(gpu)
        if layout is None:
            continue
        found[f"gpu-{minor_of(gpu)}"] = ClaimPlace(gpu.index)
        for profile in layout.profiles:
            for start in profile.starts:
                found[instance_name(gpu, profile, start)] = ClaimPlace(gpu.index, profile.name, start)
    return found


def steps_for_claim(
    wanted: Collection[str], places: Mapping[str, ClaimPlace], gpus: Sequence[PresentGpu]
) -> tuple[MigStep, ...] | Problem:
    """The changes after which all these devices exist. Devices without a known place need none."""
    steps: list[MigStep] = []
    for present in gpus:
        own = [place for name in wanted if (place := places.get(name)) is not None and place.gpu == present.gpu.index]
        if not own:
            continue
        found = _undivided(present) if any(not one.profile for one in own) else _divided(own, present)
        if isinstance(found, Problem):
            return found
        steps += found
    return tuple(steps)


def _undivided(present: PresentGpu) -> tuple[MigStep, ...] | Problem:
    gpu = present.gpu
    if not gpu.is_mig:
        return ()
    if present.is_used:
        used = [one for one in present.instances if one.number in present.used]
        names = ", ".join(f"{one.profile} at slice {one.start}" for one in used) or "one of its instances"
        return Problem(f"GPU {gpu.index} is divided, and {names} is in use", _WAIT)
    destroyed = (
        MigStep("destroy", gpu.index, present.uuid, profile=one.profile, start=one.start, number=one.number)
        for one in present.instances
    )
    return (*destroyed, MigStep("mode", gpu.index, present.uuid, enabled=False))


def _divided(own: Sequence[ClaimPlace], present: PresentGpu) -> tuple[MigStep, ...] | Problem:
    if not present.gpu.is_mig and present.is_used:
        return Problem(f"GPU {present.gpu.index} is in use without MIG", _WAIT)
    plan = steps_on_gpu([WantedPlace(one.gpu, one.profile, one.start) for one in own], present)
    return Problem("; ".join(plan.refusals), _WAIT) if plan.refusals else plan.steps
