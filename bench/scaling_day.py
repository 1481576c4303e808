"""A simulated day of a cluster whose nodes come and go: useful GPU-hours of each paid GPU-hour.

    python -m bench.scaling_day [--days N]

Four ways to provide nodes get the same workloads, the same spot market and the same failures: Shoal's planner, the
oracles of Karpenter and of Cluster Autoscaler (scaling_oracles.py), and a fleet that never changes. 67 machine types in
three zones, on demand and on spot, are 201 pools of each; spot prices change by the hour, spot machines are taken back,
and pools have no capacity at times.

In favour of the others: in all worlds a gang-aware scheduler places the pods, each gang in one zone and as a whole;
and the fleet that never changes knows the load of the day: its size is the 95th percentile of the GPUs that would run
if there were always room, and it has no machine that fails. An hour is useful if its work was not lost: an interrupted
job goes on at its last checkpoint. A machine is paid from its request until it is given back.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Final, NamedTuple

from msgspec.structs import replace

from bench.random_clusters import GIB_OF_CORE, ZONES, Cluster, Item, Machine, pod_of
from bench.scaling_oracles import PlannedMachine, cluster_autoscaler_plan, karpenter_plan
from shoal.autoscale.nodes.catalog import node_of_type
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import ON_DEMAND, SPOT, InstanceType, Offering
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, POOL_LABEL, ZONE_LABEL

_TYPES: Final = 67
_MINUTES: Final = 24 * 60
_BOOT: Final = 8
_CHECKPOINT: Final = 15
_RESTART: Final = 2
_BACK_OFF: Final = 30
_OUTAGE: Final = 0.1
"""The probability that a pool has no capacity for an hour."""
_POOL: Final = NodePool("gpu")


class Pool(NamedTuple):
    """A type in a zone under a capacity type."""

    type: str
    zone: str
    capacity_type: str


@dataclass(eq=False)
class Job:
    name: str
    pods: int
    item: Item
    minutes: int
    arrived: int
    done: int = 0
    """Minutes of work that are kept."""
    begun: int | None = None
    started_at: int = 0

    @property
    def gpus(self) -> int:
        return self.pods * self.item.gpus

    @property
    def items(self) -> list[Item]:
        return [self.item] * self.pods


@dataclass(eq=False)
class Node:
    name: str
    machine: Machine
    pool: Pool
    launched: int
    ready: int
    jobs: list[Job] = field(default_factory=list)
    """One entry for each pod."""
    empty_since: int | None = None

    @property
    def gpus_left(self) -> int:
        return self.machine.gpus - sum(job.item.gpus for job in self.jobs)

    @property
    def cores_left(self) -> int:
        return self.machine.cores - sum(job.item.cores for job in self.jobs)


class Market:
    """What the cloud does on this day; the same for all."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"market {seed}")
        self.machines: dict[str, Machine] = {}
        self.on_demand: dict[tuple[str, str], float] = {}
        self.interruptions: dict[tuple[str, str], float] = {}
        """Per hour."""
        self._spot: dict[tuple[str, str, int], float] = {}
        self._outages: set[tuple[Pool, int]] = set()
        for number in range(_TYPES):
            gpus = chance.choice([1, 1, 2, 4, 4, 8, 8, 8])
            cores = gpus * chance.choice([8, 12, 16])
            price = 0.04 * cores + 2.2 * gpus * chance.uniform(0.8, 1.3)
            name = f"t{number:02}"
            self.machines[name] = Machine(name, cores, gpus, ())
            for zone in ZONES:
                self.on_demand[name, zone] = round(price * chance.uniform(0.95, 1.05), 3)
                self.interruptions[name, zone] = chance.choice([0.02, 0.05, 0.1, 0.2])
                factor = chance.uniform(0.35, 0.6)
                for hour in range(24):
                    factor = min(max(factor * chance.uniform(0.93, 1.07), 0.25), 0.95)
                    self._spot[name, zone, hour] = factor
                    for kind in (ON_DEMAND, SPOT):
                        if chance.random() < _OUTAGE * (2 if kind == SPOT else 0.3):
                            self._outages.add((Pool(name, zone, kind), hour))

    def price(self, pool: Pool, minute: int) -> float:
        factor = 1.0 if pool.capacity_type == ON_DEMAND else self._spot[pool.type, pool.zone, minute // 60 % 24]
        return round(self.on_demand[pool.type, pool.zone] * factor, 3)

    def has_capacity(self, pool: Pool, minute: int) -> bool:
        return (pool, minute // 60 % 24) not in self._outages

    def lifetime(self, node: Node, seed: int) -> float:
        """Minutes from its request until the cloud takes it back."""
        if node.pool.capacity_type == ON_DEMAND:
            return math.inf
        rate = self.interruptions[node.pool.type, node.pool.zone]
        return 60 * random.Random(f"{seed} {node.pool} {node.launched} {node.name}").expovariate(rate)

    def pools(self) -> list[Pool]:
        return [Pool(name, zone, kind) for name in self.machines for zone in ZONES for kind in (ON_DEMAND, SPOT)]


def day_of_jobs(seed: int) -> list[Job]:
    """Two thirds of the load come in the twelve hours around the afternoon."""
    chance = random.Random(f"jobs {seed}")
    jobs: list[Job] = []
    for minute in range(_MINUTES):
        rate = 0.35 * (1 + 0.8 * math.sin(2 * math.pi * (minute / _MINUTES - 0.375)))
        if chance.random() >= rate:
            continue
        pods, gpus = chance.choice([1, 1, 1, 1, 1, 1, 2, 2, 4, 8]), chance.choice([1, 1, 1, 2, 2, 4, 4, 8])
        minutes = round(min(max(chance.lognormvariate(math.log(50), 0.9), 10), 480))
        item = Item(gpus * 6, gpus * 6 * GIB_OF_CORE, gpus, gang=f"j{len(jobs)}" if pods > 1 else "")
        jobs.append(Job(f"j{len(jobs)}", pods, item, minutes, minute))
    return jobs


class Given(NamedTuple):
    """What a provider of nodes decides about."""

    minute: int
    waiting: Sequence[Job]
    nodes: Sequence[Node]
    pools: Sequence[Pool]
    """Those that are not avoided."""
    market: Market


class Plan(NamedTuple):
    new: Sequence[Pool] = ()
    needed: frozenset[str] = frozenset()
    """The names of nodes on which waiting pods are planned: they are not given back."""


Provide = Callable[[Given], Plan]


class Outcome(NamedTuple):
    name: str
    useful: float
    """GPU-hours."""
    paid: float
    cost: float
    waits: float
    """Minutes until a job begins, on average."""
    unfinished: int

    @property
    def share(self) -> float:
        return self.useful / self.paid if self.paid else 0.0


class World:
    """One day with one provider of nodes."""

    def __init__(self, name: str, seed: int, provide: Provide, empty_minutes: int) -> None:
        self._name, self._seed, self._provide, self._empty_minutes = name, seed, provide, empty_minutes
        self._market = Market(seed)
        self._nodes: list[Node] = []
        self._waiting: list[Job] = []
        self._running: list[Job] = []
        self._avoided: dict[Pool, int] = {}
        self._made = 0
        self._useful = self._paid = self._cost = 0.0
        self._ends: dict[Node, float] = {}

    def add(self, pool: Pool, minute: int, ready: int) -> None:
        self._made += 1
        node = Node(f"n{self._made:05}", self._market.machines[pool.type], pool, minute, ready)
        self._nodes.append(node)
        self._ends[node] = minute + self._market.lifetime(node, self._seed)

    def run(self) -> Outcome:
        jobs = day_of_jobs(self._seed)
        coming = list(jobs)
        minute = 0
        # The jobs of the evening end after midnight; two more days are enough for all.
        while (coming or self._waiting or self._running) and minute < 3 * _MINUTES:
            while coming and coming[0].arrived <= minute:
                self._waiting.append(coming.pop(0))
            self._take_back(minute)
            self._finish(minute)
            self._place(minute)
            self._scale(minute)
            self._pay(minute)
            minute += 1
        begun = [job.begun - job.arrived for job in jobs if job.begun is not None]
        left = sum(job.done < job.minutes for job in jobs)
        return Outcome(self._name, self._useful / 60, self._paid / 60, self._cost, mean(begun), left)

    def _take_back(self, minute: int) -> None:
        for node in [each for each in self._nodes if self._ends[each] <= minute]:
            for job in dict.fromkeys(node.jobs):
                self._stop(job, minute)
            self._nodes.remove(node)

    def _stop(self, job: Job, minute: int) -> None:
        worked = max(minute - job.started_at - _RESTART, 0)
        kept = worked // _CHECKPOINT * _CHECKPOINT
        job.done += kept
        self._useful += kept * job.gpus
        self._leave(job)
        self._running.remove(job)
        self._waiting.insert(0, job)

    def _leave(self, job: Job) -> None:
        for node in self._nodes:
            node.jobs = [each for each in node.jobs if each is not job]

    def _finish(self, minute: int) -> None:
        for job in list(self._running):
            worked = minute - job.started_at - _RESTART
            if worked >= job.minutes - job.done:
                self._useful += (job.minutes - job.done) * job.gpus
                job.done = job.minutes
                self._leave(job)
                self._running.remove(job)

    def _place(self, minute: int) -> None:
        ready = [each for each in self._nodes if each.ready <= minute]
        for job in list(self._waiting):
            chosen = next((found for zone in ZONES if (found := fitted(job, ready, zone)) is not None), None)
            if chosen is None:
                continue
            for node in chosen:
                node.jobs.append(job)
            job.begun = minute if job.begun is None else job.begun
            job.started_at = minute
            self._waiting.remove(job)
            self._running.append(job)

    def _scale(self, minute: int) -> None:
        plan = Plan()
        if self._waiting:
            avoided = {pool for pool, until in self._avoided.items() if until > minute}
            pools = [pool for pool in self._market.pools() if pool not in avoided]
            plan = self._provide(Given(minute, self._waiting, self._nodes, pools, self._market))
        for node in list(self._nodes):
            if node.jobs or node.ready > minute or node.name in plan.needed:
                node.empty_since = None
            elif node.empty_since is None:
                node.empty_since = minute
            elif minute - node.empty_since >= self._empty_minutes:
                self._nodes.remove(node)
        for pool in plan.new:
            if self._market.has_capacity(pool, minute):
                self.add(pool, minute, minute + _BOOT)
            else:
                self._avoided[pool] = minute + _BACK_OFF

    def _pay(self, minute: int) -> None:
        for node in self._nodes:
            self._paid += node.machine.gpus
            self._cost += self._market.price(node.pool, minute) / 60


def fitted(job: Job, nodes: Sequence[Node], zone: str) -> list[Node] | None:
    """A node for each pod of the job in the zone, the fullest first; None if there is not room for all."""
    left = {node: (node.gpus_left, node.cores_left) for node in nodes if node.pool.zone == zone}
    chosen = []
    for _ in range(job.pods):
        able = [each for each, (gpus, cores) in left.items() if gpus >= job.item.gpus and cores >= job.item.cores]
        if not able:
            return None
        node = min(able, key=lambda each: (left[each], each.name))
        gpus, cores = left[node]
        left[node] = gpus - job.item.gpus, cores - job.item.cores
        chosen.append(node)
    return chosen


def without_places(given: Given) -> tuple[list[Job], frozenset[str]]:
    """The waiting jobs for which the nodes that exist or start have no room, and the nodes on which the others go."""
    copies = [copy_of(node) for node in given.nodes]
    missing, needed = [], set()
    for job in given.waiting:
        chosen = next((found for zone in ZONES if (found := fitted(job, copies, zone)) is not None), None)
        if chosen is None:
            missing.append(job)
            continue
        for node in chosen:
            node.jobs.append(job)
            needed.add(node.name)
    return missing, frozenset(needed)


def copy_of(node: Node) -> Node:
    return Node(node.name, node.machine, node.pool, node.launched, node.ready, list(node.jobs))


# -- providers ----------------------------------------------------------------------------------------------------


def shoal(given: Given) -> Plan:
    offered: dict[str, list[Offering]] = {name: [] for name in given.market.machines}
    for pool in given.pools:
        price = given.market.price(pool, given.minute)
        offered[pool.type].append(Offering(pool.zone, pool.capacity_type, price))
    types = tuple(instance_type(given.market.machines[name], each) for name, each in offered.items())
    by_name = {one.name: one for one in types}
    pods, gangs = [], {}
    for job in given.waiting:
        for number, item in enumerate(job.items):
            name = f"{job.name}-{number}"
            pods.append(pod_of(name, item))
            if item.gang:
                gangs[f"default/{name}"] = job.name
    plan = plan_nodes(
        PlanningInput(
            pools=(_POOL,),
            types={_POOL.name: types},
            nodes=tuple(existing(node, by_name[node.machine.name], given.minute) for node in given.nodes),
            pods=tuple(pods),
            gangs=gangs,
            together=dict.fromkeys(set(gangs.values()), ZONE_LABEL),
            settings=PlanningSettings(packing="LeastCost"),
        )
    )
    new = [Pool(each.launch.name, each.offering.zone, each.offering.capacity_type) for each in plan.new_nodes]
    return Plan(new, frozenset(plan.placed.values()))


def instance_type(machine: Machine, offerings: Iterable[Offering]) -> InstanceType:
    capacity = {"cpu": machine.cores * 1000, "memory": machine.cores * GIB_OF_CORE * 2**30, "pods": 110}
    labels = {"node.kubernetes.io/instance-type": (machine.name,), "nvidia.com/gpu.product": ("NVIDIA-H100-80GB-HBM3",)}
    return InstanceType(
        machine.name, {**capacity, "nvidia.com/gpu": machine.gpus}, labels=labels, offerings=tuple(offerings)
    )


def existing(node: Node, one: InstanceType, minute: int) -> ExistingNode:
    made = node_of_type(node.name, _POOL, one)
    labels = {
        **made.metadata.labels,
        POOL_LABEL: _POOL.name,
        ZONE_LABEL: node.pool.zone,
        CAPACITY_TYPE_LABEL: node.pool.capacity_type,
        "kubernetes.io/hostname": node.name,
    }
    pods = []
    for number, job in enumerate(node.jobs):
        pod = pod_of(f"{job.name}-on-{node.name}-{number}", job.item)
        pods.append(replace(pod, spec=replace(pod.spec, node_name=node.name)))
    return ExistingNode(
        replace(made, metadata=replace(made.metadata, labels=labels)),
        tuple(pods),
        is_initialized=node.ready <= minute,
    )


def by_oracle(plan: Callable[[Cluster], Sequence[PlannedMachine]]) -> Provide:
    """Pods for which nodes exist or start are not planned again."""

    def provide(given: Given) -> Plan:
        missing, needed = without_places(given)
        if not missing:
            return Plan((), needed)
        machines = []
        for name, machine in given.market.machines.items():
            for kind in (ON_DEMAND, SPOT):
                offered = [each for each in given.pools if each.type == name and each.capacity_type == kind]
                prices = tuple((each.zone, given.market.price(each, given.minute)) for each in offered)
                if prices:
                    machines.append(machine._replace(name=f"{name} {kind}", prices=prices))
        items = tuple(item for job in missing for item in job.items)
        found = plan(Cluster("gangs", items, tuple(machines)))
        return Plan([Pool(name, each.zone, kind) for each in found for name, kind in [each.machine.split()]], needed)

    return provide


def static_fleet(seed: int) -> Outcome:
    market = Market(seed)
    largest = [name for name, machine in market.machines.items() if machine.gpus == 8]
    pool = Pool(min(largest, key=lambda name: market.on_demand[name, "a"]), "a", ON_DEMAND)
    demand = [0] * _MINUTES
    for job in day_of_jobs(seed):
        for minute in range(job.arrived, min(job.arrived + job.minutes + _RESTART, _MINUTES)):
            demand[minute] += job.gpus
    size = sorted(demand)[int(0.95 * _MINUTES)]
    world = World("fleet that never changes", seed, lambda _: Plan(), 100 * _MINUTES)
    for _ in range(-(-size // 8)):
        world.add(pool, 0, 0)
    return world.run()


def compared(seed: int) -> list[Outcome]:
    return [
        World("Shoal", seed, shoal, 1).run(),
        World("Karpenter", seed, by_oracle(karpenter_plan), 1).run(),
        World("Cluster Autoscaler", seed, by_oracle(cluster_autoscaler_plan), 10).run(),
        static_fleet(seed),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=3, help="different days, one after the other")
    chosen = parser.parse_args(arguments)
    shares: dict[str, list[float]] = {}
    for seed in range(chosen.days):
        for each in compared(seed):
            shares.setdefault(each.name, []).append(each.share)
            print(
                f"day {seed}, {each.name}: {100 * each.share:.1f} % of {each.paid:,.0f} paid GPU-hours are useful, "
                f"{each.cost / each.useful:.2f} per useful GPU-hour, jobs wait {each.waits:.1f} min, "
                f"{each.unfinished} unfinished",
                flush=True,
            )
    means = {name: mean(found) for name, found in shares.items()}
    own, *others = means.values()
    best = max(others[:2])
    print(f"useful part of the paid GPU-hours: {100 * own:.1f} % (bar >= the oracles' {100 * best:.1f} %)")
    print(f"above the fleet that never changes: {100 * (own - others[2]):.1f} points (bar >= 10)")
    return 0


if __name__ == "__main__":
    main()
