"""The price of a plan against the optimum, and against plans made pod by pod."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

import pytest
from msgspec.structs import replace

from build.depth import seeds
from build.pool_worlds import machine, planned, pod, pool
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.plan import NodePlan, PlanningSettings

CHEAPEST = PlanningSettings(packing="LeastCost")

Item = tuple[int, int]
"""Cores and GPUs."""


def _types(chance: random.Random) -> list[InstanceType]:
    found = []
    for number in range(chance.randint(3, 7)):
        cpu, gpus = chance.choice([4, 8, 16, 32, 64]), chance.choice([0, 1, 2, 4, 8])
        price = 0.05 * cpu + 2.5 * gpus * chance.uniform(0.7, 1.3) + chance.uniform(0, 0.5)
        found.append(machine(f"t{number}", cpu, price=round(price, 3), gpus=gpus))
    return found


def _holds(one: InstanceType, cpu: int, gpus: int) -> bool:
    return cpu * 1000 <= one.capacity["cpu"] and gpus <= one.capacity.get("nvidia.com/gpu", 0)


def _items(chance: random.Random, types: Sequence[InstanceType], most: int) -> list[Item]:
    drawn = [(chance.choice([1, 2, 3, 6, 12, 24]), chance.choice([0, 0, 1, 2, 4])) for _ in range(most)]
    return [item for item in drawn if any(_holds(one, *item) for one in types)] or [(1, 0)]


def _optimum(items: Sequence[Item], types: Sequence[InstanceType]) -> float:
    """The price of the cheapest division of the pods over nodes, of all divisions that there are."""

    def price(mask: int) -> float:
        chosen = [item for bit, item in enumerate(items) if mask >> bit & 1]
        cpu, gpus = sum(item[0] for item in chosen), sum(item[1] for item in chosen)
        return min((one.offerings[0].price for one in types if _holds(one, cpu, gpus)), default=float("inf"))

    @lru_cache(None)
    def best(mask: int) -> float:
        if not mask:
            return 0.0
        first = mask & -mask
        rest = sub = mask ^ first
        least = float("inf")
        while True:
            least = min(least, price(sub | first) + best(rest ^ sub))
            if not sub:
                return least
            sub = (sub - 1) & rest

    return best((1 << len(items)) - 1)


def _plan(items: Sequence[Item], types: Sequence[InstanceType], settings: PlanningSettings) -> NodePlan:
    pods = [pod(f"p{number}", str(cpu), gpus=gpus) for number, (cpu, gpus) in enumerate(items)]
    return planned(types, pods, settings=settings)


@pytest.mark.parametrize("seed", seeds(12))
def test_a_plan_for_few_pods_costs_no_more_than_the_optimum(seed: int) -> None:
    chance = random.Random(seed)
    types = [*_types(chance), machine("small", 4, price=0.3)]
    items = _items(chance, types, 7)

    assert _plan(items, types, CHEAPEST).price == pytest.approx(_optimum(items, types))


@pytest.mark.parametrize("seed", seeds(6))
def test_a_plan_for_more_pods_is_never_dearer_than_one_made_pod_by_pod(seed: int) -> None:
    chance = random.Random(100 + seed)
    types = [*_types(chance), machine("small", 4, price=0.3)]
    items = _items(chance, types, 40)
    cheap, usual = _plan(items, types, CHEAPEST), _plan(items, types, PlanningSettings())

    assert cheap.cost <= usual.cost
    placed = sorted(key for node in cheap.new_nodes for key in node.pods)
    assert placed == sorted(key for node in usual.new_nodes for key in node.pods)


def test_limits_hold_for_a_plan_that_was_made_cheaper() -> None:
    types = [machine("two", 2, price=1), machine("eight", 8, price=5)]
    pods = [pod(f"p{number}", "2") for number in range(4)]
    by_count = planned(types, pods, pools=[pool(limits={"nodes": 1})], settings=CHEAPEST)
    free = planned(types, pods, settings=CHEAPEST)

    assert free.price == 4
    assert len(by_count.new_nodes) == 1


def test_pods_with_rules_about_other_pods_stay_where_they_were_planned() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
            ]
        }
    }
    pods = [pod(f"p{number}", "1", labels={"app": "x"}, affinity=apart) for number in range(3)]
    plan = planned([machine("big", 16, price=1)], pods, settings=CHEAPEST)

    assert [len(node.pods) for node in plan.new_nodes] == [1, 1, 1]


def test_capacity_that_is_paid_already_is_used_first_and_no_more_of_it_than_there_is() -> None:
    reserved = Offering("a", "reserved", 40, left=2)
    kind = replace(
        machine("gpu-8", 96, price=30, gpus=8, zones=["a"]), offerings=(reserved, Offering("a", "on-demand", 30))
    )
    pods = [pod(f"p{number}", "4", gpus=8) for number in range(3)]

    for packing in (CHEAPEST, PlanningSettings()):
        plan = planned([kind], pods, settings=packing)
        assert sorted(node.offering.capacity_type for node in plan.new_nodes) == ["on-demand", "reserved", "reserved"]
        assert plan.cost[1] == 30.0, "a reservation costs nothing more if it is used"
        assert plan.price == 110.0, "and is billed all the same"


def test_a_gang_for_which_a_reservation_is_too_small_gets_no_part_of_it() -> None:
    kind = replace(machine("gpu-8", 96, price=30, gpus=8), offerings=(Offering("a", "reserved", 40, left=2),))
    pods = [pod(f"p{number}", "4", gpus=8) for number in range(3)]
    gangs = {f"default/p{number}": "train" for number in range(3)}

    alone, together = planned([kind], pods), planned([kind], pods, gangs=gangs)

    assert len(alone.new_nodes) == 2
    assert [each.reason for each in alone.pending] == ["no more nodes of the reservation are left"]
    assert not together.new_nodes
    assert len(together.pending) == 3


def test_a_gang_goes_to_the_zone_in_which_the_whole_plan_costs_least() -> None:
    small, large = (
        machine("small", 8, price=9, gpus=2, zones=["a"]),
        machine("large", 24, price=10, gpus=4, zones=["b"]),
    )
    pods = [pod(f"g{number}", "4", gpus=1) for number in range(2)] + [pod("other", "3", gpus=2)]
    gangs = {f"default/g{number}": "train" for number in range(2)}
    together = {"train": "topology.kubernetes.io/zone"}
    plan = planned((small, large), pods, gangs=gangs, together=together, settings=CHEAPEST)

    assert [(node.launch.name, len(node.pods)) for node in plan.new_nodes] == [("large", 3)]


def test_pods_share_a_node_of_the_pool_that_some_of_them_need_if_both_pools_are_preferred_equally() -> None:
    shared = {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    kind = machine("gpu-1", 16, price=4, gpus=1)
    pods = [pod("plain", "8"), pod("part", "4", gpus=1, nodeSelector={"nvidia.com/gpu.replicas": "2"})]
    for weight, nodes in ((0, 1), (1, 2)):
        pools = [pool("whole", weight=weight), pool("shared", labels=shared)]
        plan = planned((kind,), pods, pools=pools, settings=CHEAPEST)

        assert len(plan.new_nodes) == nodes
        assert not plan.pending
