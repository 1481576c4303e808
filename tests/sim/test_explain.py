"""Whoever asks why gets an answer, also before anything was decided."""

from __future__ import annotations

from build.nodes import node
from build.yielding import Yielding, gpus
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import profile_named
from shoal.engine.reasons import Code
from shoal.sim.explain import Explainer


def test_before_the_first_round() -> None:
    world = Yielding(node("n").gpus(2)).runs("old", "n", gpus(2)).waits("new", gpus(2), 1)
    placement = Placement(world.cluster, profile_named("Shoal", world.cluster, PodMix()))
    reason = Explainer(placement, 0, 0.0).pod("new")
    assert reason.code == Code.NO_DEVICE
    assert "Free 2 GPUs on n (old)." in reason.help
