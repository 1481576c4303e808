"""Reads the profiles of a KubeSchedulerConfiguration file as policies that can be compared with Shoal's."""

from __future__ import annotations

import sys
from pathlib import Path

from shoal.api.files import read_whole
from shoal.api.scheduler_config import read_scheduler_config
from shoal.engine.kube_profile import OWN_PLUGINS, KubeProfiles, kube_profiles
from shoal.engine.profile import POLICIES, Builder
from shoal.units.errors import UserError, Where

_MAX_BYTES = 4 * 1024 * 1024


def load_profiles(path: Path) -> dict[str, Builder]:
    """Builders by scheduler name; what has no effect is said on stderr."""
    where = Where(file=str(path))
    found = read_profiles(path)
    for profile in found.profiles:
        if profile.scheduler_name in POLICIES:
            raise UserError(
                f"schedulerName {profile.scheduler_name} is the name of one of Shoal's policies",
                where=where,
                fix="give the profile another name, or the table could not tell them apart",
            )
    for warning in found.warnings:
        sys.stderr.write(f"shoal: warning: {warning}\n")
    return {profile.scheduler_name: profile.build for profile in found.profiles}


def read_profiles(path: Path) -> KubeProfiles:
    """The profiles of the file, and what of it has no effect."""
    return kube_profiles(read_scheduler_config(read_whole(path, _MAX_BYTES), str(path), OWN_PLUGINS))
