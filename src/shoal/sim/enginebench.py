"""Measures the speed of the engine as it is used: events, `cycle`, a plan, and outcomes as events.

A fleet of eight-GPU nodes is filled to four fifths and kept there: each arrival is preceded by the end of a running
pod chosen at random. Fifty shapes (whole devices, shares, CPU only; some tied to a model, a zone or a tolerated taint)
come in random order, under the default policy with all rules. The rescan is the same rules over all nodes, in numpy and
in one pass, with nothing remembered between decisions; it is charged for the decision only, the engine for everything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from time import perf_counter

from shoal.api.node_affinity import NodeRule
from shoal.api.requirement import Requirement
from shoal.api.taints import Taint, Toleration
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import Demand, GpuShare, WholeGpus
from shoal.engine.events import NodeFacts, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Place, Refuse
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.pod_mix import PodMix, class_of
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.engine.rescan import Rescan
from shoal.engine.steps.allocate import allocate

SHAPES = 50
LOAD = 0.8
PER_ROUND = 50
_GIB = 1024**3
_MODELS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")
_ZONES = ("a", "b", "c", "d")


@dataclass
class Bench:
    """One fleet under load."""

    nodes: int
    seed: int
    policy: str = DEFAULT_POLICY
    random: random.Random = field(init=False)
    cluster: Cluster = field(init=False)
    placement: Placement = field(init=False)
    running: list[str] = field(init=False, default_factory=list)
    arrivals: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        for index in range(self.nodes):
            self.intake.apply(NodeSeen(self.node(index)))
        self.asks = [self.ask(index) for index in range(SHAPES)]
        self.whos = [self.who(index) for index in range(SHAPES)]
        mix = PodMix.of(class_of(ask) for ask in self.asks)
        self.placement = Placement(self.cluster, profile_named(self.policy, self.cluster, mix))

    def node(self, index: int) -> NodeFacts:
        return fleet_node(index)

    def ask(self, index: int) -> Ask:
        return shape_ask(index)

    def who(self, _index: int) -> PodIdentity:
        return NO_IDENTITY

    def fill(self, pods: int = 0) -> None:
        """Place pods until the load is reached, or this many."""
        least_free = (1 - LOAD) * self.cluster.gpu_free_milli
        while len(self.running) < pods if pods else self.cluster.gpu_free_milli > least_free:
            self.round(PER_ROUND, departures=0)

    def placements(self, count: int) -> float:
        """Seconds per placement at steady load: departures, arrivals, cycle, plan and outcomes all counted."""
        for _ in range(20):
            self.round(PER_ROUND, PER_ROUND)
        before = self.arrivals - self.refused
        start = perf_counter()
        while self.arrivals - self.refused - before < count:
            self.round(PER_ROUND, PER_ROUND)
        return (perf_counter() - start) / (self.arrivals - self.refused - before)

    def rescans(self, count: int) -> float:
        """Seconds per decision when every decision applies all rules to all nodes."""
        charges = [self.cluster.charge(ask) for ask in self.asks]
        rescan = Rescan(self.cluster, self.placement.profile)
        start = perf_counter()
        for index in range(count):
            rescan.best(charges[index % SHAPES])
        return (perf_counter() - start) / count

    def round(self, arrivals: int, departures: int) -> None:
        """Some pods end, some come, the engine decides, the environment applies the plan."""
        apply = self.intake.apply
        running = self.running
        for index in self.random.choices(range(len(running) - departures + 1), k=departures):
            running[index], running[-1] = running[-1], running[index]
            apply(PodGone(running.pop()))
        shapes: dict[str, int] = {}
        for shape in self.random.choices(range(SHAPES), k=arrivals):
            key = f"team/pod-{self.arrivals}"
            self.arrivals += 1
            shapes[key] = shape
            apply(PodArrived(key, self.asks[shape], who=self.whos[shape]))
        now_s = float(self.arrivals)
        # Only placement is measured: a pod that does not fit leaves, without moves and preemption.
        plan = cycle(self.cluster, self.placement, now_s=now_s, seed=self.seed, steps=(allocate,))
        for intention in plan.intentions:
            if isinstance(intention, Place):
                pod = intention.pod
                shape = shapes[pod]
                apply(PodBound(pod, self.asks[shape], intention.node, intention.grant, who=self.whos[shape]))
                running.append(pod)
            elif isinstance(intention, Refuse):
                apply(PodGone(intention.pod))
                self.refused += 1


def fleet_node(index: int) -> NodeFacts:
    """One of the fleet's nodes: three models, four zones, every tenth reserved by a taint."""
    return NodeFacts(
        name=f"node-{index:05}",
        allocatable={
            "cpu": (128_000, 192_000)[index % 2],
            "memory": 1024 * _GIB,
            "pods": 110,
            "ephemeral-storage": 2048 * _GIB,
        },
        labels={
            "kubernetes.io/hostname": f"node-{index:05}",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": _ZONES[index // 7 % len(_ZONES)],
        },
        taints=(Taint(key="dedicated", value="training", effect="NoSchedule"),) if index % 10 == 0 else (),
        gpus=8,
        gpu_model=_MODELS[index % len(_MODELS)],
    )


def shape_ask(index: int) -> Ask:
    """One of the fifty shapes."""
    cpu = (4_000, 8_000, 10_000, 12_000, 14_000)[index % 5]
    memory = (16, 32, 64, 96)[index % 4] * _GIB
    demand: Demand | None
    if index < 8:
        demand = WholeGpus(8)
    elif index < 16:
        demand = WholeGpus(4)
    elif index < 24:
        demand = WholeGpus(2)
    elif index < 36:
        demand = WholeGpus(1)
    elif index < 47:
        demand = GpuShare((100, 200, 250, 300, 330, 400, 500, 600, 700, 750, 800)[index - 36])
    else:
        demand = None
    devices = demand.count if isinstance(demand, WholeGpus) else 1
    return Ask(
        requests=(("cpu", cpu * devices), ("memory", memory * devices)),
        devices=demand,
        gpu_models=frozenset(_MODELS[: 1 + index % 2]) if index % 5 == 1 else frozenset(),
        nodes=_in_zone(_ZONES[index % 4]) if index % 7 == 3 else NodeRule(),
        tolerations=(Toleration(key="dedicated", operator="Exists"),) if index % 3 == 0 else (),
    )


def _in_zone(zone: str) -> NodeRule:
    return NodeRule((Requirement("topology.kubernetes.io/zone", "In", (zone,)),))
