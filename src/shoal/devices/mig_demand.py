"""Decides which MIG instances a node creates because pods need them, on nodes whose operator allows this.

The label or annotation `shoal.dev/mig-layout: dynamic` allows it; `shoal.dev/mig-devices: "4-7"` restricts it to some
GPUs. For each pod that the scheduler is about to bind, it writes the annotation `mig.shoal.dev/<uid of the pod>` with
the places of its instances, `0:2g.20gb@4`. The node creates them, and the scheduler binds the pod when they are
advertised.

Guarantees: an instance in use, or wanted by a pod, is never destroyed; the mode of a GPU in use does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.devices.mig_plan import MigStep, PresentGpu, mask_of
from shoal.devices.mig_port import GpuInstance
from shoal.devices.names import OWN_MIG_DEVICES, OWN_MIG_LAYOUT, OWN_MIG_WANTED
from shoal.devices.tiling import tiling
from shoal.units.annotation_numbers import numbers
from shoal.units.errors import UserError, Where

DYNAMIC = "dynamic"
_PLACE = re.compile(r"(?P<gpu>[0-9]{1,3}):(?P<profile>[^@,]{1,30})@(?P<start>[0-9]{1,2})")


class WantedPlace(msgspec.Struct, frozen=True, order=True):
    gpu: int
    profile: str
    start: int

    def __str__(self) -> str:
        return f"{self.gpu}:{self.profile}@{self.start}"


class DemandPlan(msgspec.Struct, frozen=True):
    steps: tuple[MigStep, ...]
    refusals: tuple[str, ...] = ()


def wanted_annotation(uid: str) -> str:
    return OWN_MIG_WANTED + uid


def written_places(places: Iterable[WantedPlace]) -> str:
    return ",".join(map(str, places))


def wanted_places(annotations: Mapping[str, str]) -> tuple[WantedPlace, ...]:
    """Of all pods, without those that cannot be read."""
    found = set()
    for name, text in annotations.items():
        if name.startswith(OWN_MIG_WANTED):
            for part in text.split(","):
                match = _PLACE.fullmatch(part)
                if match is not None:
                    found.add(WantedPlace(int(match["gpu"]), match["profile"], int(match["start"])))
    return tuple(sorted(found))


def settings_of(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations of a node that concern MIG on demand."""
    return {
        name: text
        for name, text in annotations.items()
        if name in (OWN_MIG_LAYOUT, OWN_MIG_DEVICES) or name.startswith(OWN_MIG_WANTED)
    }


def problem_with_claims(settings: Mapping[str, str], node: str) -> str:
    """Why instances cannot be created on demand where GPUs are given to resource claims; empty if that is not wanted.
    `settings`: labels and annotations of the Node.
    """
    if settings.get(OWN_MIG_LAYOUT) != DYNAMIC:
        return ""
    return (
        f"{OWN_MIG_LAYOUT}: {DYNAMIC} has no effect: it is for the device plugin, and the agent of this Node gives "
        f"GPUs to resource claims (--dra); remove it with: kubectl label node {node} {OWN_MIG_LAYOUT}- or kubectl "
        f"annotate node {node} {OWN_MIG_LAYOUT}-; --dra-dynamic-mig creates instances for claims"
    )


def pool_of(settings: Mapping[str, str], gpus: Sequence[PresentGpu]) -> frozenset[int]:
    """The indexes of the GPUs that may be divided on demand; `settings`: labels, and annotations before them."""
    if settings.get(OWN_MIG_LAYOUT) != DYNAMIC:
        return frozenset()
    capable = {one.gpu.index for one in gpus if one.gpu.is_capable and one.gpu.facts is not None}
    listed = settings.get(OWN_MIG_DEVICES)
    if listed is None:
        return frozenset(capable)
    try:
        return frozenset(capable.intersection(numbers(listed, Where())))
    except UserError:
        return frozenset()


def demand_plan(settings: Mapping[str, str], gpus: Sequence[PresentGpu]) -> DemandPlan:
    """The steps that enable MIG on idle GPUs of the pool, and create the wanted instances."""
    pool = pool_of(settings, gpus)
    wanted = wanted_places(settings)
    steps: list[MigStep] = []
    refusals: list[str] = []
    for present in gpus:
        index = present.gpu.index
        own = [one for one in wanted if one.gpu == index]
        if index not in pool:
            refusals += [f"{one}: GPU {index} is not divided on demand" for one in own]
        elif not present.gpu.is_mig and present.is_used:
            refusals += [f"{one}: GPU {index} is in use without MIG" for one in own]
        else:
            found = steps_on_gpu(own, present)
            steps += found.steps
            refusals += found.refusals
    return DemandPlan(tuple(steps), tuple(refusals))


def steps_on_gpu(wanted: Sequence[WantedPlace], present: PresentGpu) -> DemandPlan:
    """On one GPU, which is in MIG mode or idle, and whose model is known."""
    gpu = present.gpu
    assert gpu.facts is not None  # noqa: S101 - callers pass GPUs of known models only
    tiles = tiling(gpu.facts.name)
    steps = [] if gpu.is_mig else [MigStep("mode", gpu.index, present.uuid, enabled=True)]
    there = list(present.instances)
    refusals = []
    for one in wanted:
        profile = gpu.facts.profile(one.profile)
        if profile is None or one.start not in profile.starts:
            refusals.append(f"{one}: GPU {gpu.index} has no such place")
            continue
        if any((each.profile, each.start) == (profile.name, one.start) and each.compute for each in there):
            continue
        mask = tiles.places(profile)[profile.starts.index(one.start)]
        taken = [each for each in there if mask_of(each, tiles) & mask]
        kept = next((each for each in taken if _is_kept(each, present, wanted)), None)
        if kept is not None:
            refusals.append(f"{one}: {kept.profile} at slice {kept.start} is in use")
            continue
        for each in taken:
            there.remove(each)
            number, compute = each.number, each.compute
            steps.append(
                MigStep(
                    "destroy",
                    gpu.index,
                    present.uuid,
                    profile=each.profile,
                    start=each.start,
                    number=number,
                    compute=compute,
                )
            )
        whole = (profile.compute,)
        steps.append(MigStep("create", gpu.index, present.uuid, profile=profile.name, start=one.start, compute=whole))
        there.append(GpuInstance(-1, profile.name, one.start, profile.width, whole))
    return DemandPlan(tuple(steps), tuple(refusals))


def _is_kept(one: GpuInstance, present: PresentGpu, wanted: Sequence[WantedPlace]) -> bool:
    if one.number in present.used or one.number < 0:
        return True
    names = {one.profile, one.profile.replace("+", ".")}
    return any(each.profile in names and each.start == one.start for each in wanted)
