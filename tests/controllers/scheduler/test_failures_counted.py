"""How often something failed with a pod, of many thousands of pods."""

from __future__ import annotations

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.controllers.scheduler.outcomes import Outcomes


def test_pods_that_went_are_forgotten_and_whoever_is_there_is_still_failing() -> None:
    """Whoever looks at gangs asks it: a pod that is failing must not look as if it were being bound."""
    world = Scenario(node("n").gpus(1))
    world.arrive("waits", ask().gpus(8))
    world.arrive("placed", ask().gpus(1))
    world.round()
    outcomes = Outcomes(world.cluster, lambda: None)
    for pod in ("waits", "placed"):
        assert [outcomes.delay_s(pod) for _ in range(3)] == [0.0, 1.0, 2.0]
    for number in range(12_000):
        outcomes.delay_s(f"gone-{number}")
        outcomes.delay_s(f"gone-{number}")
    assert outcomes.is_failing("waits")
    assert outcomes.is_failing("placed")
    assert not outcomes.is_failing("gone-0")
    assert outcomes.delay_s("placed") == 4.0
