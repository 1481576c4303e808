"""Checks MIG layouts for a GPU model: whether a named one exists there, and whether instances fit on one GPU.

A refusal names the nearest layout that is possible: the one that changes the fewest slices.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from shoal.data.gpus import Model
from shoal.data.mig import Layout, Profile, compute_instances
from shoal.devices.mig_instances import fits, possible_counts
from shoal.devices.mig_layouts import Counts, default_layouts
from shoal.devices.mig_profile_names import MigNameError, ProfileName, parse_profile

_MOST_PARTS = 64
"""More than any GPU has; each is an element of a list."""


class Problem(msgspec.Struct, frozen=True):
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}; {self.fix}"


def layout_problem(name: str, model: Model, gpus: int) -> Problem | None:
    """Why machines with these GPUs cannot start with the layout, with the possible ones."""
    known = default_layouts(model.mig)
    if name in known:
        return None
    possible = ", ".join(known) if model.mig else "none, it has no MIG"
    return Problem(f"the MIG layout {name} is not possible on {gpus} x {model.name}", f"possible: {possible}")


def counts_problem(counts: Counts, facts: Layout) -> Problem | None:
    """Why one GPU cannot have these instances."""
    if counts_fit(counts, facts):
        return None
    names = ", ".join(f"{profile.name} (at most {profile.max})" for profile in facts.profiles)
    near = f"the nearest possible layout is {written(nearest(counts, facts))}"
    for name, count in counts:
        profile = facts.profile(_instance_of(name))
        if profile is None:
            return Problem(f"{facts.name} has no MIG profile {name}", f"{near}; it has {names}")
        if count > profile.max and name == profile.name:
            return Problem(f"{count} x {name} do not fit on {facts.name}", f"at most {profile.max} do; {near}")
    return Problem(f"{written(counts)} do not fit together on {facts.name}", f"{near}; it has {names}")


def counts_fit(counts: Counts, facts: Layout) -> bool:
    """Whether one GPU can have these instances, parts of GPU instances included."""
    whole = gpu_instances(counts)
    return whole is not None and fits(facts, whole)


def gpu_instances(counts: Counts) -> Counts | None:
    """The GPU instances that hold the compute instances; None if a name or a size is none, or there are too many.

    Compute instances of one profile of GPU instances share as few of them as possible.
    """
    sizes: dict[str, list[int]] = {}
    slices: dict[str, int] = {}
    for text, count in counts:
        try:
            name = parse_profile(text)
        except MigNameError:
            return None
        if name.compute not in compute_instances(name.slices) or count > _MOST_PARTS:
            return None
        sizes.setdefault(name.instance, []).extend([name.compute] * count)
        slices[name.instance] = name.slices
    return tuple(sorted((instance, len(packed(each, slices[instance]))) for instance, each in sizes.items()))


def packed(sizes: list[int], slices: int) -> list[list[int]]:
    """Compute instances of these sizes, in as few GPU instances as the largest first makes; each with its sizes."""
    most = compute_instances(slices)
    found: list[list[int]] = []
    for size in sorted(sizes, reverse=True):
        place = next(
            (one for one in found if sum(one) + size <= slices and one.count(size) < most.get(size, 0)),
            None,
        )
        if place is None:
            found.append([size])
        else:
            place.append(size)
    return found


def nearest(counts: Counts, facts: Layout) -> Counts:
    """The possible instances that differ from the wanted ones in the fewest slices; of equals those with most."""
    wanted: dict[str, int] = {}
    for text, count in gpu_instances(counts) or counts:
        name = _closest_name(text, facts)
        wanted[name] = wanted.get(name, 0) + count
    return _nearest(tuple(sorted(wanted.items())), facts.name, facts)


@lru_cache(maxsize=256)
def _nearest(wanted: Counts, _name: str, facts: Layout) -> Counts:
    sizes = {profile.name: profile.compute for profile in facts.profiles}
    target = dict(wanted)

    def distance(found: Counts) -> tuple[int, int, Counts]:
        have = dict(found)
        differing = sum(
            sizes[name] * abs(target.get(name, 0) - have.get(name, 0)) for name in target.keys() | have.keys()
        )
        return differing, -sum(sizes[name] * count for name, count in found), found

    return min((found for found in possible_counts(facts.name) if found), key=distance)


def _closest_name(text: str, facts: Layout) -> str:
    """The profile itself, else the one of the GPU with the nearest size."""
    found = facts.profile(_instance_of(text))
    if found is not None:
        return found.name
    try:
        wanted = parse_profile(text)
    except MigNameError:
        return facts.profiles[0].name
    return min(facts.profiles, key=lambda one: _difference(one, wanted)).name


def _difference(profile: Profile, wanted: ProfileName) -> tuple[int, bool, int]:
    name = parse_profile(profile.name)
    differs = (name.attributes, name.without) != (wanted.attributes, wanted.without)
    return abs(name.slices - wanted.slices), differs, abs(name.gigabytes - wanted.gigabytes)


def _instance_of(text: str) -> str:
    try:
        return parse_profile(text).instance
    except MigNameError:
        return text


def written(counts: Counts) -> str:
    return " and ".join(f"{count} x {name}" for name, count in counts) or "no instances"
