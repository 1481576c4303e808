"""The scores that a case's scheduler has on, as a profile of ours."""

from __future__ import annotations

from shoal.engine.profile import Profile
from shoal.engine.queues.disciplines.kai.node_preferences import kai_profile
from shoal.engine.queues.disciplines.volcano.node_scores import volcano_profile

from .case import Case
from .volcano import configuration_of


def profile_of(case: Case) -> Profile:
    if not case.is_kai:
        return volcano_profile(configuration_of(case))
    placement = case.config.node_placement
    return kai_profile(
        gpu_spread=placement.get("gpu") == "spread",
        cpu_spread=placement.get("cpu") == "spread",
        shares_spread=case.config.gpu_placement == "spread",
    )
