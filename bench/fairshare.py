"""The fair-share discipline on the shapes by which KAI measures itself, each beside its bar. Processor time.

python -m bench.fairshare [--only SHAPE]
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from time import process_time

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import WholeGpus
from shoal.engine.events import GroupSeen, NodeFacts, NodeSeen, PodArrived, PodBound
from shoal.engine.groups import GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare

_GPU = 1000


class _World:
    def __init__(self, nodes: int, queues: Sequence[FairQueue], actions: Sequence[str]) -> None:
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.placement = Placement(self.cluster, NO_PREFERENCES)
        self.discipline = Fairshare(queues, actions=actions)
        self.jobs = 0
        amounts = {"cpu": 128_000, "memory": 1 << 40, "pods": 250}
        for at in range(nodes):
            self.intake.apply(NodeSeen(NodeFacts(f"node-{at:04}", amounts, gpus=8)))

    def job(self, queue: str, gpus: int, pods: int = 1, node: str = "", priority: int = 50) -> None:
        """Running on the node, or waiting."""
        self.jobs += 1
        name = f"ns/job-{self.jobs:05}"
        ask = Ask(requests=(("cpu", 1000), ("memory", 1 << 30)), devices=WholeGpus(gpus))
        self.intake.apply(GroupSeen(GroupFacts(name, pods, priority=priority, created_s=float(self.jobs), queue=queue)))
        for at in range(pods):
            who = PodIdentity(group=name, queue=queue, order=at, since_s=1.0)
            if node:
                self.intake.apply(PodBound(f"{name}-{at}", ask, node, None, priority, who=who))
            else:
                self.intake.apply(PodArrived(f"{name}-{at}", ask, priority, who=who))

    def timed(self, now_s: float = 1000.0) -> tuple[float, Plan]:
        gc.collect()
        started = process_time()
        plan = cycle(self.cluster, self.placement, now_s=now_s, seed=0, steps=self.discipline.steps())
        return process_time() - started, plan


def _queue(name: str, gpus: int | None = 0, parent: str = "") -> FairQueue:
    quota = None if gpus is None else gpus * _GPU
    return FairQueue(name, parent, 100, (quota, None, None), (None, None, None), (1, 1, 1))


def reclaim_small_jobs() -> tuple[float, str]:
    """500 nodes; one queue runs 4,000 one-GPU jobs, another waits with as many."""
    world = _World(500, [_queue("a", 2000), _queue("b", 2000)], ["allocate", "consolidation", "reclaim", "preempt"])
    for at in range(4000):
        world.job("a", 1, node=f"node-{at % 500:04}")
    for _ in range(4000):
        world.job("b", 1)
    took_s, plan = world.timed()
    return took_s, f"{len(plan.evicted)} evicted, {len(plan.nominated)} promised"


def reclaim_large_jobs() -> tuple[float, str]:
    """1,000 nodes full of one-GPU jobs; jobs of eight pods of eight GPUs wait."""
    world = _World(1000, [_queue("a", 4000), _queue("b", 4000)], ["allocate", "consolidation", "reclaim", "preempt"])
    for at in range(8000):
        world.job("a", 1, node=f"node-{at % 1000:04}")
    for _ in range(50):
        world.job("b", 8, pods=8)
    took_s, plan = world.timed()
    return took_s, f"{len(plan.evicted)} evicted, {len(plan.nominated)} promised"


def allocate_mixed() -> tuple[float, str]:
    """1,000 nodes, 5,000 jobs of mixed size in 100 queues, one full cycle."""
    queues = [_queue(f"p{at}", None) for at in range(10)]
    queues += [_queue(f"q{at}", 80, f"p{at % 10}") for at in range(100)]
    world = _World(1000, queues, ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"])
    sizes = [(1, 1), (2, 1), (1, 1), (4, 1), (1, 4), (8, 1), (1, 1), (8, 2), (2, 2), (1, 1)]
    for at in range(5000):
        gpus, pods = sizes[at % len(sizes)]
        world.job(f"q{at * 7 % 100}", gpus, pods)
    took_s, plan = world.timed()
    return took_s, f"{len(plan.placed)} placed"


def idle() -> tuple[float, str]:
    """1,000 nodes, 10,000 pods run, 5,000 wait, and nothing has changed."""
    queues = [_queue(f"q{at}", 80) for at in range(100)]
    world = _World(1250, queues, ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"])
    for at in range(10_000):
        world.job(f"q{at % 100}", 1, node=f"node-{at // 8:04}")
    for at in range(5000):
        world.job(f"q{at % 100}", 8)
    world.timed()
    took_s, plan = world.timed(1001.0)
    return took_s, f"{len(plan.intentions)} intentions"


_SHAPES: dict[str, tuple[Callable[[], tuple[float, str]], float]] = {
    "reclaim-small": (reclaim_small_jobs, 2.0),
    "reclaim-large": (reclaim_large_jobs, 2.0),
    "allocate": (allocate_mixed, 1.0),
    "idle": (idle, 0.005),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(_SHAPES))
    chosen = parser.parse_args(arguments).only
    for name, (shape, bar_s) in _SHAPES.items():
        if chosen in (None, name):
            took_s, what = shape()
            print(f"{name:14} {took_s:8.3f} s  (bar {bar_s:g} s)  {what}: {(shape.__doc__ or '').strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
