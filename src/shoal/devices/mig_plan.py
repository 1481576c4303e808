"""Plans how a node gets a MIG layout with the least destruction.

Guarantees: instances that the layout has too stay where they are, as many as possible; an instance that is in use is
destroyed only if that is forced; a layout is refused before the first step if a GPU cannot have it. Of all sets of
instances that can stay, the one with the most slices stays.

Rejected: to replace all instances of a GPU if one differs, as mig-parted does. It ends work that the new layout has
room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from shoal.data.mig import Layout
from shoal.devices.mig_gpus import MigGpu, targets
from shoal.devices.mig_instances import named_places
from shoal.devices.mig_layout_checks import Problem, packed
from shoal.devices.mig_layouts import Counts, MigSpec, Specs
from shoal.devices.mig_port import GpuInstance
from shoal.devices.mig_profile_names import creation_order, parse_profile
from shoal.devices.tiling import Tiling, tiling

StepKind = Literal["destroy", "mode", "create"]
Wanted = tuple[str, tuple[int, ...]]
"""The profile of a GPU instance, and the sizes of its compute instances."""


class PresentGpu(msgspec.Struct, frozen=True):
    """One GPU as it is now."""

    gpu: MigGpu
    uuid: str
    instances: tuple[GpuInstance, ...] = ()
    used: frozenset[int] = frozenset()
    """Numbers of the GPU instances that are in use."""
    is_used: bool = False
    """Whether the GPU is in use, as a whole or in part."""


class MigStep(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: StepKind
    gpu: int
    uuid: str
    enabled: bool = False
    """The mode."""
    profile: str = ""
    start: int = 0
    number: int = 0
    compute: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.kind == "mode":
            return f"GPU {self.gpu}: {'enable' if self.enabled else 'disable'} MIG mode"
        return f"GPU {self.gpu}: {self.kind} {self.profile or 'instance ' + str(self.number)} at slice {self.start}"


class MigPlan(msgspec.Struct, frozen=True):
    steps: tuple[MigStep, ...]
    kept: int
    """The number of instances that stay."""

    @property
    def destroyed(self) -> int:
        return sum(step.kind == "destroy" for step in self.steps)


def planned(specs: Specs, gpus: Sequence[PresentGpu], *, is_forced: bool = False) -> MigPlan | Problem:
    """The steps in their order, or why the layout cannot be applied. `is_forced`: instances in use are destroyed."""
    wanted = targets(specs, [one.gpu for one in gpus])
    if isinstance(wanted, Problem):
        return wanted
    return planned_for(wanted, gpus, is_forced=is_forced)


def planned_for(
    wanted: Mapping[int, MigSpec], gpus: Sequence[PresentGpu], *, is_forced: bool = False
) -> MigPlan | Problem:
    """`wanted`: by index."""
    steps: list[MigStep] = []
    kept = 0
    for present in gpus:
        spec = wanted.get(present.gpu.index)
        if spec is None:
            continue
        found = _of_gpu(spec, present, is_forced=is_forced)
        if isinstance(found, Problem):
            return found
        steps += found.steps
        kept += found.kept
    return MigPlan(tuple(sorted(steps, key=lambda step: _ORDER[step.kind])), kept)


_ORDER: Mapping[StepKind, int] = {"destroy": 0, "mode": 1, "create": 2}


def _of_gpu(spec: MigSpec, present: PresentGpu, *, is_forced: bool) -> MigPlan | Problem:
    gpu = present.gpu
    if spec.enabled != gpu.is_mig:
        if present.is_used and not is_forced:
            return Problem(f"GPU {gpu.index} is in use by another client", _MOVE)
        steps = [_destroy(present, one) for one in present.instances]
        steps.append(MigStep("mode", gpu.index, present.uuid, enabled=spec.enabled))
        kept: tuple[GpuInstance, ...] = ()
    else:
        steps, kept = [], present.instances
    if not spec.enabled:
        return MigPlan(tuple(steps), 0)
    if gpu.facts is None:
        if not spec.counts:
            return MigPlan((*steps, *(_destroy(present, one) for one in kept)), 0)
        return Problem(f"the profiles of GPU {gpu.index} ({gpu.name}) are not known", "update Shoal")
    found = _rearranged(wanted_instances(spec.counts), kept, gpu.facts, frozenset() if is_forced else present.used)
    if found is None:
        what = f"GPU {gpu.index}: an instance in use has no place in the layout"
        return Problem(f"{what}: {_listed(present)}", _MOVE)
    stays, places = found
    steps += [_destroy(present, one) for one in kept if one not in stays]
    steps += [
        MigStep("create", gpu.index, present.uuid, profile=profile, start=start, compute=compute)
        for (profile, compute), start in places
    ]
    return MigPlan(tuple(steps), len(stays))


_MOVE = "end the work on it first, or force the change"


def wanted_instances(counts: Counts) -> tuple[Wanted, ...]:
    """The GPU instances of a layout in the order of their creation, each with its compute instances."""
    sizes: dict[str, list[int]] = {}
    for text, count in counts:
        name = parse_profile(text)
        sizes.setdefault(name.instance, []).extend([name.compute] * count)
    found = [
        (profile, tuple(group))
        for profile, each in sizes.items()
        for group in packed(each, parse_profile(profile).slices)
    ]
    return tuple(sorted(found, key=lambda one: (creation_order(one[0]), one[1])))


Places = tuple[tuple[Wanted, int], ...]


def _rearranged(
    wanted: Sequence[Wanted], present: Sequence[GpuInstance], facts: Layout, held: frozenset[int]
) -> tuple[tuple[GpuInstance, ...], Places] | None:
    """The instances that stay, and the places of the new ones."""
    tiles = tiling(facts.name)
    missing = Counter(wanted)
    usable = [one for one in present if missing[one.profile, one.compute]]
    if any(one.number in held and one not in usable for one in present):
        return None
    for stays in _sets(usable):
        if held - {one.number for one in stays}:
            continue
        left = missing - Counter((one.profile, one.compute) for one in stays)
        if sum(left.values()) != len(wanted) - len(stays):
            continue
        places = _placed(left, stays, tiles)
        if places is not None:
            return stays, places
    return None


def _sets(instances: Sequence[GpuInstance]) -> Iterator[tuple[GpuInstance, ...]]:
    """All subsets, those with most slices first."""
    found = [each for size in range(len(instances) + 1) for each in combinations(instances, size)]
    yield from sorted(found, key=lambda each: (-sum(one.width for one in each), -len(each)))


def _placed(left: Counter[Wanted], stays: Sequence[GpuInstance], tiles: Tiling) -> Places | None:
    free = tiles.empty
    for one in stays:
        free &= ~mask_of(one, tiles)
    counts: Counter[str] = Counter()
    for (profile, _), count in left.items():
        counts[profile] += count
    named = named_places(tiles, free, tuple(sorted(counts.items())))
    if named is None:
        return None
    starts: dict[str, list[int]] = {}
    for profile, start in named:
        starts.setdefault(profile, []).append(start)
    ordered = sorted(left.elements(), key=lambda one: (creation_order(one[0]), one[1]))
    return tuple((one, starts[one[0]].pop(0)) for one in ordered)


def mask_of(instance: GpuInstance, tiles: Tiling) -> int:
    profile = tiles.profile(instance.profile) if instance.profile else None
    if profile is not None and instance.start in profile.starts:
        return tiles.places(profile)[profile.starts.index(instance.start)]
    return ((1 << instance.width) - 1) << instance.start


def _destroy(present: PresentGpu, one: GpuInstance) -> MigStep:
    return MigStep(
        "destroy",
        present.gpu.index,
        present.uuid,
        profile=one.profile,
        start=one.start,
        number=one.number,
        compute=one.compute,
    )


def _listed(present: PresentGpu) -> str:
    return ", ".join(
        f"{one.profile or one.number} at slice {one.start}" for one in present.instances if one.number in present.used
    )
