"""What node planning costs, and what its plans cost, each figure beside its bar.

    python -m bench.autoscale [--quick]

Plans for 1,000 and 10,000 waiting GPU pods of 50 shapes and 20 gangs over 130 instance types in three zones, on demand
and on spot; searches for nodes to remove over 1,000 nodes with 6,000 pods; plans for 300 small random clusters with
gangs, fractions of GPUs and MIG instances against the optimum, and against plans as Karpenter and as Cluster Autoscaler
with `least-waste` makes them. Times are of the processor, but for the delays of an event loop beside a plan.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from bench.plan_prices import price_lines
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
from shoal.controllers.node_scaling.computations import Computations

T = TypeVar("T")
_GPU = "nvidia.com/gpu"
_GIB = 2**30
_TICK_S = 0.01
_LEAST_COST = PlanningSettings(packing="LeastCost")
_NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


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
    """The time of a plan."""
    given = _waiting(pods)
    return _timed(lambda: plan_nodes(given))


def loop_delays(pods: int) -> list[float]:
    """By how much the event loop is late while a plan is computed beside it, in seconds, the shortest first."""

    async def work() -> list[float]:
        running = asyncio.ensure_future(Computations().plan(_waiting(pods)))
        late = []
        while not running.done():
            began = time.perf_counter()
            await asyncio.sleep(_TICK_S)
            late.append(time.perf_counter() - began - _TICK_S)
        return sorted(late)

    return asyncio.run(work())


def _waiting(pods: int) -> PlanningInput:
    """So many pods of 50 shapes, a fifth of them in 20 gangs."""
    chance = random.Random(1)
    shapes = [(chance.choice([1, 2, 4, 8]), chance.randint(1, 32) * 500, chance.randint(1, 64)) for _ in range(50)]
    drawn = [shapes[chance.randrange(50)] for _ in range(pods)]
    made = tuple(_pod(f"p{n}", cpu, gpus, memory) for n, (gpus, cpu, memory) in enumerate(drawn))
    gangs = {f"default/p{n}": f"gang-{n % 20}" for n in range(pods // 5)}
    return PlanningInput(
        pools=(NodePool("gpu"),), types={"gpu": _types()}, pods=made, gangs=gangs, settings=_LEAST_COST
    )


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="50 small clusters instead of 300")
    chosen = parser.parse_args(arguments)
    for pods, bar in ((1000, 1.0), (10_000, 6.0)):
        seconds, plan = planning(pods)
        print(f"plan for {pods:,} GPU pods: {seconds:.2f} s (bar <= {bar:g} s), {len(plan.new_nodes):,} nodes")
    late = loop_delays(10_000)
    p99, longest = 1000 * late[len(late) * 99 // 100], 1000 * late[-1]
    print(f"delay of the event loop meanwhile: p99 {p99:.0f} ms, longest {longest:.0f} ms")
    for is_full in (False, True):
        seconds, decided = consolidation(1000, 6, is_full=is_full)
        name = "full" if is_full else "half-empty"
        print(f"searches over 1,000 {name} nodes, 6,000 pods: {seconds:.2f} s (bar <= 3 s): {decided or 'nothing'}")
    for line in price_lines(50 if chosen.quick else 300):
        print(line)
    return 0


if __name__ == "__main__":
    main()
