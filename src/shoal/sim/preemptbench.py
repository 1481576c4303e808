"""Measures preemption for gangs on a full fleet: search, check and trimming, in one cycle.

A thousand nodes of eight GPUs, all taken by gangs of one to sixteen pods with one to eight GPUs each, in three
priorities, some elastic, one in ten under a disruption budget that lets half of it go. Fifty gangs of eight pods come,
each pod for a whole node, above them all.
"""

from __future__ import annotations

import random
from time import perf_counter

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import WholeGpus
from shoal.engine.events import BudgetSeen, GroupSeen, NodeFacts, NodeSeen, PodArrived, PodBound
from shoal.engine.groups import BudgetFacts, GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.preempt import preempt
from shoal.units.errors import BugError

NODES = 1_000
GPUS = 8
CLAIMANTS = 50
PODS = 8
_SIZES = (1, 1, 2, 2, 4, 8)
_GIB = 1024**3
_NOW_S = 100_000.0


class PreemptBench:
    """One full fleet and those that come."""

    def __init__(self, seed: int, nodes: int = NODES, claimants: int = CLAIMANTS) -> None:
        self._random = random.Random(seed)
        self.cluster = Cluster()
        self._intake = Intake(self.cluster)
        amounts = {"cpu": 128_000, "memory": 1024 * _GIB, "pods": 110}
        for number in range(nodes):
            self._intake.apply(NodeSeen(NodeFacts(f"n{number}", amounts, gpus=GPUS)))
        self._fill(nodes)
        for number in range(claimants):
            self._come(f"default/claimant-{number}")

    def run(self) -> tuple[float, Plan]:
        """One round, in seconds, and what it decided."""
        placement = Placement(self.cluster, profile_named(DEFAULT_POLICY, self.cluster, PodMix()))
        begin = perf_counter()
        plan = cycle(self.cluster, placement, now_s=_NOW_S, seed=0, steps=(allocate, preempt()))
        return perf_counter() - begin, plan

    def _fill(self, nodes: int) -> None:
        draw = self._random
        free = dict.fromkeys(range(nodes), GPUS)
        gangs = 0
        while free:
            name = f"default/gang-{gangs}"
            gangs += 1
            priority, size = draw.randrange(3), draw.choice(_SIZES)
            pods = []
            for number in range(draw.randint(1, 16)):
                roomy = [node for node in draw.sample(sorted(free), min(len(free), 4)) if free[node] >= size]
                if not roomy:
                    break
                # Most gangs stay close to each other: the fullest of a few.
                node = min(roomy, key=lambda node: free[node])
                free[node] -= size
                if not free[node]:
                    del free[node]
                pods.append(f"{name}-{number}")
                who = PodIdentity(group=name, since_s=draw.uniform(0.0, _NOW_S))
                self._intake.apply(PodBound(pods[-1], _ask(size), f"n{node}", None, priority, who=who))
            if not pods:
                continue
            least = len(pods) if draw.random() < 0.7 else draw.randint(1, len(pods))
            self._intake.apply(GroupSeen(GroupFacts(name, least, priority=priority)))
            if draw.random() < 0.1:
                budget = BudgetFacts(name, "default", len(pods) // 2, frozenset(pods))
                self._intake.apply(BudgetSeen(budget))

    def _come(self, name: str) -> None:
        self._intake.apply(GroupSeen(GroupFacts(name, PODS, priority=10)))
        for number in range(PODS):
            self._intake.apply(PodArrived(f"{name}-{number}", _ask(GPUS), 10, who=PodIdentity(group=name)))


def preempt_s(seed: int = 7) -> float:
    """Seconds for all claimants."""
    seconds, plan = PreemptBench(seed).run()
    if len(plan.nominated) != CLAIMANTS * PODS:
        raise BugError(f"{len(plan.nominated)} pods were nominated, not {CLAIMANTS * PODS}")
    return seconds


def _ask(gpus: int) -> Ask:
    return Ask((("cpu", 1000 * gpus), ("memory", 16 * gpus * _GIB)), WholeGpus(gpus))
