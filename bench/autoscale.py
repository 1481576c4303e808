"""What node planning costs, and what its plans cost, each figure beside its bar.

    python -m bench.autoscale [--quick]

Plans for 1,000 and 10,000 waiting GPU pods of 50 shapes and 20 gangs over 130 instance types in three zones, on demand
and on spot; searches for nodes to remove over 1,000 nodes with 6,000 pods; plans for 300 small random clusters against
the optimum, against plans made pod by pod as Karpenter makes them, and against Cluster Autoscaler's: first fit of the
largest pods on nodes of one group, the group chosen by least waste. Times are of the processor.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from statistics import mean
from typing import TypeVar

from shoal.api.container import Container, Resources
from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.node import Node, NodeStatus
from shoal.api.pod import Pod, PodSpec
from shoal.autoscale.disruption.candidates import DisruptableNode
from shoal.autoscale.disruption.searches import DisruptionInput, NodeDisruption
from shoal.autoscale.nodes.catalog import quantities_of
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.gpu_instances import types_for_pool
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.plan import NodePlan, PlanningSettings
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pools import NodePool

T = TypeVar("T")
_GPU = "nvidia.com/gpu"
_GIB = 2**30
_LEAST_COST = PlanningSettings(packing="LeastCost")
_NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)

Item = tuple[int, int]
"""Cores and GPUs."""


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def _pod(name: str, cpu_milli: int, gpus: int, memory_gib: int = 4) -> Pod:
    amounts = {"cpu": cpu_milli, "memory": memory_gib * _GIB} | ({_GPU: gpus} if gpus else {})
    wanted = quantities_of(amounts)
    owner = OwnerReference("apps/v1", "ReplicaSet", "owner", "", controller=True)
    return Pod(
        ObjectMeta(name=name, namespace="default", owner_references=(owner,)),
        PodSpec(containers=(Container(name="main", resources=Resources(wanted, wanted)),)),
    )


def _types() -> tuple[InstanceType, ...]:
    return types_for_pool(NodePool("gpu"), ("a", "b", "c"))[:130]


def planning(pods: int) -> tuple[float, NodePlan]:
    """The time of a plan for so many pods of 50 shapes, a fifth of them in 20 gangs."""
    chance = random.Random(1)
    shapes = [(chance.choice([1, 2, 4, 8]), chance.randint(1, 32) * 500, chance.randint(1, 64)) for _ in range(50)]
    drawn = [shapes[chance.randrange(50)] for _ in range(pods)]
    made = tuple(_pod(f"p{n}", cpu, gpus, memory) for n, (gpus, cpu, memory) in enumerate(drawn))
    gangs = {f"default/p{n}": f"gang-{n % 20}" for n in range(pods // 5)}
    given = PlanningInput(
        pools=(NodePool("gpu"),), types={"gpu": _types()}, pods=made, gangs=gangs, settings=_LEAST_COST
    )
    return _timed(lambda: plan_nodes(given))


def _machine(name: str, cpu: int, gpus: int, price: float) -> InstanceType:
    capacity = {"cpu": cpu * 1000, "memory": cpu * 4 * _GIB, "pods": 110} | ({_GPU: gpus} if gpus else {})
    label = {"node.kubernetes.io/instance-type": (name,)}
    return InstanceType(name, capacity, labels=label, offerings=(Offering("a", "on-demand", price),))


def consolidation(nodes: int, pods_of_node: int, *, is_full: bool) -> tuple[float, str]:
    """The time of all searches for nodes to remove, and what the last one decided."""
    chance = random.Random(2)
    kinds = [_machine(f"m{cpu}-{gpus}", cpu, gpus, 0.05 * cpu + 2 * gpus) for cpu in (30, 60) for gpus in (4, 8)]
    if is_full:
        kinds = kinds[:1]
    chosen = [kinds[chance.randrange(len(kinds))] for _ in range(nodes)]
    existing = tuple(
        DisruptableNode(
            ExistingNode(
                Node(
                    ObjectMeta(
                        name=f"n{at:04}",
                        labels={
                            "node.kubernetes.io/instance-type": kind.name,
                            "topology.kubernetes.io/zone": "a",
                            "karpenter.sh/capacity-type": "on-demand",
                            "karpenter.sh/nodepool": "gpu",
                        },
                    ),
                    status=NodeStatus(quantities_of(kind.capacity), quantities_of(kind.allocatable())),
                ),
                tuple(
                    _pod(f"p{at}-{n}", kind.capacity["cpu"] // pods_of_node if is_full else 3000, n % 2)
                    for n in range(pods_of_node)
                ),
            ),
            is_consolidatable=True,
        )
        for at, kind in enumerate(chosen)
    )
    given = DisruptionInput(
        planning=PlanningInput(
            pools=(NodePool("gpu"),), types={"gpu": tuple(kinds)}, nodes=tuple(each.existing for each in existing)
        ),
        nodes=existing,
        now=_NOW,
    )

    def search() -> str:
        searches = NodeDisruption(given)
        found = [searches.decide(method) for method in ("emptiness", "drift", "multi", "single")]
        return ", ".join(f"{each.method} {each.action} {len(each.nodes)}" for each in found if each.action != "none")

    return _timed(search)


def _holds(one: InstanceType, cpu: int, gpus: int) -> bool:
    return cpu * 1000 <= one.capacity["cpu"] and gpus <= one.capacity.get(_GPU, 0)


def _optimum(items: Sequence[Item], types: Sequence[InstanceType]) -> float:
    """The cheapest of all divisions of the pods over nodes."""

    def price(mask: int) -> float:
        cpu = sum(item[0] for bit, item in enumerate(items) if mask >> bit & 1)
        gpus = sum(item[1] for bit, item in enumerate(items) if mask >> bit & 1)
        return min((one.offerings[0].price for one in types if _holds(one, cpu, gpus)), default=float("inf"))

    prices = [price(mask) for mask in range(1 << len(items))]

    @lru_cache(None)
    def best(mask: int) -> float:
        if not mask:
            return 0.0
        first = mask & -mask
        rest = sub = mask ^ first
        least = float("inf")
        while True:
            least = min(least, prices[sub | first] + best(rest ^ sub))
            if not sub:
                return least
            sub = (sub - 1) & rest

    return best((1 << len(items)) - 1)


def _group_autoscaler(items: Sequence[Item], types: Sequence[InstanceType]) -> float:
    """Cluster Autoscaler: again and again the group that wastes least grows by the nodes that first fit needs."""
    left, total = sorted(items, reverse=True), 0.0
    while left:
        options: list[tuple[float, int, InstanceType, list[Item], list[Item]]] = []
        for one in types:
            nodes: list[Item] = []
            served = []
            for item in left:
                if not _holds(one, *item):
                    continue
                at = next((n for n, (c, g) in enumerate(nodes) if _holds(one, c + item[0], g + item[1])), None)
                if at is None:
                    nodes.append(item)
                else:
                    nodes[at] = nodes[at][0] + item[0], nodes[at][1] + item[1]
                served.append(item)
            if served:
                cores = one.capacity["cpu"] // 1000 * len(nodes)
                options.append(((cores - sum(item[0] for item in served)) / cores, len(options), one, nodes, served))
        _, _, one, nodes, served = min(options)
        total += one.offerings[0].price * len(nodes)
        for item in served:
            left.remove(item)
    return total


def prices(clusters: int) -> tuple[list[float], list[float], list[float]]:
    """The price of our plans over the optimum, over Karpenter's and over Cluster Autoscaler's."""
    optimum, karpenter, groups = [], [], []
    for seed in range(clusters):
        chance = random.Random(seed)
        types = [_machine("small", 4, 0, 0.3)]
        for number in range(chance.randint(3, 8)):
            cpu, gpus = chance.choice([4, 8, 16, 32, 64, 96]), chance.choice([0, 1, 2, 4, 8])
            price = 0.05 * cpu + 2.5 * gpus * chance.uniform(0.7, 1.3) + chance.uniform(0, 0.5)
            types.append(_machine(f"t{number}", cpu, gpus, round(price, 3)))
        drawn = [
            (chance.choice([1, 2, 3, 6, 12, 24]), chance.choice([0, 0, 1, 1, 2, 4]))
            for _ in range(chance.randint(3, 10))
        ]
        items = [item for item in drawn if any(_holds(one, *item) for one in types)] or [(1, 0)]
        given = PlanningInput(
            pools=(NodePool("gpu"),),
            types={"gpu": tuple(types)},
            pods=tuple(_pod(f"p{n}", cpu * 1000, gpus, 1) for n, (cpu, gpus) in enumerate(items)),
            settings=_LEAST_COST,
        )
        ours = plan_nodes(given).price
        usual = PlanningInput(pools=given.pools, types=given.types, pods=given.pods)
        optimum.append(ours / _optimum(items, types))
        karpenter.append(ours / plan_nodes(usual).price)
        groups.append(ours / _group_autoscaler(items, types))
    return optimum, karpenter, groups


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="50 small clusters instead of 300")
    chosen = parser.parse_args(arguments)
    for pods, bar in ((1000, 1.0), (10_000, 6.0)):
        seconds, plan = planning(pods)
        print(f"plan for {pods:,} GPU pods: {seconds:.2f} s (bar <= {bar:g} s), {len(plan.new_nodes):,} nodes")
    for is_full in (False, True):
        seconds, decided = consolidation(1000, 6, is_full=is_full)
        name = "full" if is_full else "half-empty"
        print(f"searches over 1,000 {name} nodes, 6,000 pods: {seconds:.2f} s (bar <= 3 s): {decided or 'nothing'}")
    optimum, karpenter, groups = prices(50 if chosen.quick else 300)
    print(
        f"price over the optimum, {len(optimum)} small clusters: mean {100 * (mean(optimum) - 1):.2f} % (bar <= 2 %), "
        f"worst {100 * (max(optimum) - 1):.1f} % (bar <= 10 %)"
    )
    for name, found in (("Karpenter", karpenter), ("Cluster Autoscaler, least waste", groups)):
        print(
            f"price against {name}: {100 * (1 - mean(found)):.1f} % cheaper on average (bar >= 8 %), "
            f"never dearer: {'yes' if max(found) < 1 + 1e-9 else 'no'}"
        )
    return 0


if __name__ == "__main__":
    main()
