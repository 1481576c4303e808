"""The scores that a case's scheduler has on, as a profile of ours."""

from __future__ import annotations

from shoal.engine.profile import NO_PREFERENCES, Profile
from shoal.engine.queues.disciplines.kai.node_preferences import kai_profile

from .case import Case


def profile_of(case: Case) -> Profile:
    if not case.is_kai:
        # Volcano's discipline prefers nodes by its configuration.
        return NO_PREFERENCES
    placement = case.config.node_placement
    return kai_profile(
        gpu_spread=placement.get("gpu") == "spread",
        cpu_spread=placement.get("cpu") == "spread",
        shares_spread=case.config.gpu_placement == "spread",
    )
