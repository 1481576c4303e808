"""How fast the engine decides, measured the way it runs: events in, `cycle`, a plan, outcomes back as events.

A fleet of eight-GPU nodes is filled to four fifths and kept there: each arrival is preceded by the end of a running
pod chosen at random. Fifty shapes (whole devices, shares, CPU only; some tied to a model, a zone or a tolerated taint)
come in random order, under the default policy with all rules. The rescan is the same rules over all nodes, in numpy and
in one pass, with nothing remembered between decisions; it is charged for the decision only, the engine for everything.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import msgspec

from shoal.api.node_affinity import NodeRule
from shoal.api.requirement import Requirement
from shoal.api.taints import Taint, Toleration
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.devices.demand import Demand, GpuShare, WholeGpus
from shoal.engine.events import NodeFacts, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.mix import Mix, class_of
from shoal.engine.placement import Placement
from shoal.engine.plan import Place, Refuse
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.engine.rescan import Rescan

SHAPES = 50
LOAD = 0.8
PER_ROUND = 50
_GIB = 1024**3
_MODELS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")
_ZONES = ("a", "b", "c", "d")


class EngineFigures(msgspec.Struct, frozen=True):
    """What `shoal bench engine` prints."""

    placements_per_s: float
    vs_rescan_5k: float
    vs_rescan_50k: float
    growth_50k_over_5k: float
    rss_mb: float


def run(progress: Callable[[str], None], seed: int = 7) -> EngineFigures:
    """All figures; half a minute, or a whole one on a busy machine."""
    progress("5,000 nodes: filling")
    small = Bench(5_000, seed)
    small.fill()
    progress("5,000 nodes: 40,000 placements")
    small_s = small.placements(40_000)
    progress("5,000 nodes: rescan")
    small_rescan_s = small.rescans(400)
    del small
    progress("50,000 nodes: filling")
    large = Bench(50_000, seed)
    large.fill()
    progress("50,000 nodes: 40,000 placements")
    large_s = large.placements(40_000)
    progress("50,000 nodes: rescan")
    large_rescan_s = large.rescans(40)
    del large
    progress("50,000 nodes: memory, in a process of its own")
    return EngineFigures(
        placements_per_s=round(1 / small_s),
        vs_rescan_5k=round(small_rescan_s / small_s, 1),
        vs_rescan_50k=round(large_rescan_s / large_s, 1),
        growth_50k_over_5k=round(large_s / small_s, 3),
        rss_mb=round(memory_mb(seed), 1),
    )


def memory_mb(seed: int) -> float:
    """Peak memory of a fresh process that holds 50,000 nodes and 100,000 pods and has placed them."""
    program = f"from shoal.sim.enginebench import print_memory; print_memory({int(seed)})"
    done = subprocess.run(  # noqa: S603 - our own interpreter, no user text
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def print_memory(seed: int) -> None:
    bench = Bench(50_000, seed)
    bench.fill(pods=100_000)
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}\n")


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
            self.intake.apply(NodeSeen(fleet_node(index)))
        self.asks = [shape_ask(index) for index in range(SHAPES)]
        mix = Mix.of(class_of(ask) for ask in self.asks)
        self.placement = Placement(self.cluster, profile_named(self.policy, self.cluster, mix))

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
        """Some pods end, some come, the engine decides, the world does as told."""
        apply = self.intake.apply
        running = self.running
        for index in self.random.choices(range(len(running) - departures + 1), k=departures):
            running[index], running[-1] = running[-1], running[index]
            apply(PodGone(running.pop()))
        asks: dict[str, Ask] = {}
        for ask in self.random.choices(self.asks, k=arrivals):
            key = f"team/pod-{self.arrivals}"
            self.arrivals += 1
            asks[key] = ask
            apply(PodArrived(key, ask))
        plan = cycle(self.cluster, self.placement, now_s=float(self.arrivals), seed=self.seed)
        for intention in plan.intentions:
            if isinstance(intention, Place):
                pod = intention.pod
                apply(PodBound(pod, asks[pod], intention.node, intention.grant))
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
