"""Manifests as the commands that decide read them: files to facts, a policy or a configuration to a placement."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shoal.api.node_affinity import NodeAffinity
from shoal.cli.misses import misses
from shoal.cli.policy_names import parse_policies
from shoal.engine.cluster import Cluster
from shoal.engine.events import PodArrived, PodBound
from shoal.engine.intake import Intake
from shoal.engine.kube_profile import KubeProfiles
from shoal.engine.mix import Mix, class_of
from shoal.engine.placement import Placement
from shoal.engine.profile import POLICIES, Builder
from shoal.store.files import read_manifests
from shoal.store.world import World, world_of
from shoal.units.errors import UserError, Where, one_line


@dataclass(frozen=True, slots=True)
class Loaded:
    """A cluster as the manifests describe it, ready for its first round."""

    world: World
    intake: Intake
    placement: Placement
    now_s: float

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster


def load(paths: Sequence[str], policy: str = "Shoal", scheduler_config: Path | None = None) -> Loaded:
    """Everything up to the first decision; what was left out is said on stderr."""
    profiles = _profiles(scheduler_config)
    builder = _policy(policy)
    added: dict[str, NodeAffinity | None] = {}
    if profiles is not None:
        added = {profile.scheduler_name: profile.added_affinity for profile in profiles.profiles}
    world = world_of(read_manifests(paths), added)
    warnings = list(world.warnings)
    if profiles is not None:
        warnings += profiles.warnings
        builder = _profile_for(profiles, world.schedulers, warnings)
    intake = Intake(Cluster())
    for event in world.events:
        intake.apply(event)
    for warning in [*warnings, *misses(intake.cluster, world.waiting)]:
        sys.stderr.write(f"shoal: warning: {one_line(warning)}\n")
    mix = Mix.of(class_of(event.ask) for event in world.events if isinstance(event, PodArrived | PodBound))
    placement = Placement(intake.cluster, builder(intake.cluster, mix))
    return Loaded(world, intake, placement, world.now_s)


def _policy(name: str) -> Builder:
    chosen = parse_policies(name, tuple(POLICIES))
    if len(chosen) != 1:
        raise UserError("one policy decides", where=Where(path="--policy"), fix=f"got {', '.join(chosen)}")
    return POLICIES[chosen[0]]


def _profiles(path: Path | None) -> KubeProfiles | None:
    if path is None:
        return None
    from shoal.cli.scheduler_config import read_profiles

    return read_profiles(path)


def _profile_for(profiles: KubeProfiles, schedulers: Sequence[str], warnings: list[str]) -> Builder:
    """One profile decides for all pods: the first that a waiting pod asks for, or else the first there is."""
    wanted = [profile for name in schedulers if (profile := profiles.profile(name)) is not None]
    chosen = wanted[0] if wanted else profiles.profiles[0]
    others = sorted({*schedulers} - {chosen.scheduler_name})
    if others:
        warnings.append(f"pods of {', '.join(others)} are decided by the profile {chosen.scheduler_name} as well")
    return chosen.build
