"""What was evicted of a job is counted until the job ends, also of one without a PodGroup."""

from __future__ import annotations

import pytest

from build.fair_share import NOW_S, FairWorld, queue
from shoal.controllers.kai.measured_cycles import MeasuredCycles
from shoal.engine.cycle import cycle
from shoal.engine.events import GroupGone, PodGone
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.prometheus.exposition import text_of
from shoal.prometheus.registry import Registry
from shoal.telemetry.kai import KaiMetrics


class Scene:
    """A pod of queue a is evicted for one of queue b."""

    def __init__(self, uid: str) -> None:
        self.world = FairWorld([1], queue("a", quota=0), queue("b", quota=1))
        self.world.job("ns/a", "a", on=["n0"])
        self.world.job("ns/b", "b")
        self.registry = Registry()
        discipline = ShardedFairshare(self.world.discipline.queues)
        self.cycles = MeasuredCycles(KaiMetrics(self.registry), lambda: 0.0, discipline, lambda _: uid)

    def run(self) -> None:
        world = self.world
        cycle(world.cluster, world.placement, now_s=NOW_S, seed=0, steps=self.cycles.steps())
        self.cycles.done()

    def counted(self) -> list[str]:
        lines = text_of(self.registry.read()).decode().splitlines()
        return [line for line in lines if line.startswith("kai_pod_group_evicted_pods_total{")]

    def end(self) -> None:
        """The evicted pod and its group are gone."""
        (pod,) = self.world.cluster.terminating
        self.world.intake.apply(PodGone(pod))
        self.world.intake.apply(GroupGone("ns/a"))


@pytest.mark.parametrize(("uid", "left"), [("", 0), ("uid-1", 1)], ids=["without a PodGroup", "with a PodGroup"])
def test_a_job_without_a_pod_group_is_forgotten_when_it_ends(uid: str, left: int) -> None:
    scene = Scene(uid)
    scene.run()
    scene.run()
    assert len(scene.counted()) == 1, "it is still there"
    scene.end()
    scene.run()
    assert len(scene.counted()) == left, "of the others, the deletion of the PodGroup is what counts"
