"""Volcano's discipline on a large fleet, each shape beside its bar. Processor time.

python -m bench.volcano [--only SHAPE]
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
from collections.abc import Callable, Sequence
from time import process_time

from msgspec import structs

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
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.jobs import JobFacts
from shoal.engine.queues.disciplines.volcano.node_scores import volcano_profile
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest, VolcanoQueue
from shoal.engine.queues.disciplines.volcano.session import VolcanoFacts

_QUEUES = 100
_MOST_RUNS = 3


class _Fleet:
    def __init__(self, nodes: int, queues: Sequence[VolcanoQueue]) -> None:
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.placement = Placement(self.cluster, volcano_profile(DEFAULT))
        self._jobs: dict[str, JobFacts] = {}
        self._facts = VolcanoFacts(QueueForest(queues), self._jobs)
        self.discipline = Volcano(lambda: self._facts)
        amounts = {"cpu": 128_000, "memory": 1 << 40, "pods": 250}
        for at in range(nodes):
            self.intake.apply(NodeSeen(NodeFacts(f"node-{at:04}", amounts, gpus=8)))

    def job(
        self, queue: str, pods: int, gpus: int, nodes: Sequence[str] = (), priority: int = 0, minimum: int | None = None
    ) -> None:
        """Its pods run on the nodes, or wait."""
        name = f"ns/job-{len(self._jobs):05}"
        ask = Ask(requests=(("cpu", 1000), ("memory", 1 << 30)), devices=WholeGpus(gpus) if gpus else None)
        self.intake.apply(GroupSeen(GroupFacts(name, pods if minimum is None else minimum, priority=priority)))
        self._jobs[name] = JobFacts(name, queue, priority, float(len(self._jobs)))
        for at in range(pods):
            who = PodIdentity(group=name, queue=queue, order=at, since_s=1.0)
            if nodes:
                self.intake.apply(PodBound(f"{name}-{at}", ask, nodes[at], None, priority, who=who))
            else:
                self.intake.apply(PodArrived(f"{name}-{at}", ask, priority, who=who))

    def timed(self, now_s: float = 1000.0) -> tuple[float, Plan]:
        gc.collect()
        started = process_time()
        plan = cycle(self.cluster, self.placement, now_s=now_s, seed=0, steps=self.discipline.steps())
        return process_time() - started, plan


def _allocate() -> tuple[float, str]:
    """1,000 nodes, 5,000 jobs of 1 to 8 pods with up to 8 GPUs each, 100 queues of different weights, one full cycle"""
    chance = random.Random(1)
    fleet = _Fleet(1000, [VolcanoQueue(f"queue-{at:02}", weight=chance.randint(1, 5)) for at in range(_QUEUES)])
    for at in range(5000):
        fleet.job(f"queue-{at % _QUEUES:02}", chance.choice((1, 1, 1, 2, 4, 8)), chance.choice((0, 1, 1, 2, 4, 8)))
    took_s, plan = fleet.timed()
    return took_s, f"{len(plan.placed):,} pods placed"


def _idle() -> tuple[float, str]:
    """1,000 nodes, 10,000 running pods, 5,000 jobs that wait, a cycle in which nothing has changed"""
    fleet = _Fleet(1000, [VolcanoQueue(f"queue-{at:02}") for at in range(_QUEUES)])
    for at in range(2500):
        nodes = [f"node-{(4 * at + of) % 1000:04}" for of in range(4)]
        fleet.job(f"queue-{at % _QUEUES:02}", 4, int(at < 2000), nodes)
    for at in range(5000):
        fleet.job(f"queue-{at % _QUEUES:02}", 1, 8)
    while not fleet.discipline.is_idle:
        fleet.timed()
    took_s, plan = min((fleet.timed() for _ in range(_MOST_RUNS)), key=lambda run: run[0])
    return took_s, f"{len(plan.intentions)} decisions"


def _reclaim() -> tuple[float, str]:
    """500 nodes full of 4,000 pods of one queue, 4,000 pods of another wait, one cycle"""
    fleet = _Fleet(500, [VolcanoQueue("first"), VolcanoQueue("second")])
    for at in range(1000):
        nodes = [f"node-{(4 * at + of) % 500:04}" for of in range(4)]
        fleet.job("first", 1, 1, nodes)
        fleet.job("first", 1, 1, nodes[1:])
        fleet.job("first", 1, 1, nodes[2:])
        fleet.job("first", 1, 1, nodes[3:])
    for _ in range(4000):
        fleet.job("second", 1, 1)
    took_s, plan = fleet.timed()
    return took_s, f"{len(plan.evicted):,} pods evicted, {len(plan.nominated):,} nominated"


def _gangs() -> tuple[float, str]:
    """500 nodes full of 4,000 jobs of one queue, 200 jobs of another lack two whole nodes each, one cycle"""
    fleet = _Fleet(500, [VolcanoQueue("first"), VolcanoQueue("second")])
    fleet.discipline.configure(structs.replace(DEFAULT, actions=("enqueue", "allocate", "gangreclaim")))
    for at in range(4000):
        fleet.job("first", 1, 1, [f"node-{at // 8:04}"])
    for _ in range(200):
        fleet.job("second", 2, 8, priority=9)
    took_s, plan = fleet.timed()
    return took_s, f"{len(plan.evicted):,} pods evicted, {len(plan.nominated):,} nominated"


def _surplus() -> tuple[float, str]:
    """500 nodes full of 1,000 jobs of four one-GPU pods with a minimum of one, 200 jobs lack two whole nodes each"""
    fleet = _Fleet(500, [VolcanoQueue("first"), VolcanoQueue("second")])
    fleet.discipline.configure(structs.replace(DEFAULT, actions=("enqueue", "allocate", "gangreclaim")))
    for at in range(1000):
        fleet.job("first", 4, 1, [f"node-{at // 2:04}"] * 4, minimum=1)
    for _ in range(200):
        fleet.job("second", 2, 8, priority=9)
    took_s, plan = fleet.timed()
    return took_s, f"{len(plan.evicted):,} pods evicted, {len(plan.nominated):,} nominated"


_SHAPES: dict[str, tuple[Callable[[], tuple[float, str]], float]] = {
    "allocate": (_allocate, 1.0),
    "idle": (_idle, 0.005),
    "reclaim": (_reclaim, 2.0),
    "gangs": (_gangs, 0.5),
    "surplus": (_surplus, 2.0),
}
"""The shape and its bar in seconds."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.volcano", description=__doc__)
    parser.add_argument("--only", choices=sorted(_SHAPES))
    only = parser.parse_args(arguments).only
    for name, (shape, bar_s) in _SHAPES.items():
        if only in (None, name):
            took_s, what = shape()
            print(f"{name:10} {took_s:8.4f} s  (bar {bar_s:g} s)  {what}: {shape.__doc__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
