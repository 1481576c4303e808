"""Gangs are planned as a whole, and quota comes before provisioning."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.pool_worlds import machine, planned, pod, pool
from shoal.api.pod import Pod
from shoal.api.resources import effective_requests
from shoal.autoscale.nodes.plan import NodePlan

GPU8 = machine("gpu-8", 96, price=30, gpus=8)


def _gang(name: str, size: int, gpus: int) -> tuple[list[Pod], dict[str, str]]:
    pods = [pod(f"{name}-{n}", "4", gpus=gpus) for n in range(size)]
    return pods, {f"default/{name}-{n}": name for n in range(size)}


def test_no_node_is_provisioned_for_a_part_of_a_gang() -> None:
    pods, gangs = _gang("train", 3, 8)
    plan = planned((GPU8,), pods, gangs=gangs, pools=[pool(limits={"nvidia.com/gpu": "16"})])

    assert not plan.new_nodes
    assert len(plan.pending) == 3
    assert any("of its gang" in each.reason for each in plan.pending)


def test_capacity_that_a_gang_cannot_use_goes_to_other_pods() -> None:
    pods, gangs = _gang("train", 3, 8)
    pods.append(pod("single", "4", gpus=8))
    plan = planned((GPU8,), pods, gangs=gangs, pools=[pool(limits={"nvidia.com/gpu": "16"})])

    assert [node.pods for node in plan.new_nodes] == [("default/single",)]


def test_a_whole_gang_gets_all_its_nodes() -> None:
    pods, gangs = _gang("train", 8, 8)
    plan = planned((GPU8,), pods, gangs=gangs)

    assert len(plan.new_nodes) == 8
    assert not plan.pending


def test_a_workload_that_quota_forbids_causes_no_provisioning() -> None:
    plan = planned((GPU8,), [pod("p", gpus=1)], forbidden={"default/p": "quota of queue team-a is used up"})

    assert not plan.new_nodes
    assert plan.pending[0].reason == "quota of queue team-a is used up"


def _requested(plan: NodePlan, pods: dict[str, Pod], resource: str) -> list[tuple[int, int]]:
    return [
        (
            sum(effective_requests(pods[key].spec).get(resource, 0) for key in node.pods),
            node.launch.allocatable().get(resource, 0),
        )
        for node in plan.new_nodes
    ]


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 4, 8])), min_size=1, max_size=5),
    st.lists(st.sampled_from([0, 1, 2, 4]), max_size=8),
    st.integers(0, 40),
)
def test_no_plan_exceeds_limits_or_nodes_and_no_gang_is_split(
    gangs: list[tuple[int, int]], singles: list[int], limit: int
) -> None:
    pods: list[Pod] = []
    of: dict[str, str] = {}
    for number, (size, gpus) in enumerate(gangs):
        more, named = _gang(f"g{number}", size, gpus)
        pods += more
        of |= named
    pods += [pod(f"s{number}", "2", gpus=gpus) for number, gpus in enumerate(singles)]
    types = (machine("gpu-2", 16, price=9, gpus=2), GPU8, machine("plain", 8, price=1))
    plan = planned(types, pods, gangs=of, pools=[pool(limits={"nvidia.com/gpu": str(limit)})])
    by_key = {f"default/{each.metadata.name}": each for each in pods}
    placed = {key for node in plan.new_nodes for key in node.pods}

    assert sum(node.launch.capacity.get("nvidia.com/gpu", 0) for node in plan.new_nodes) <= limit
    assert all(node.pods for node in plan.new_nodes), "every node has a pod that needs it"
    assert len(placed) == sum(len(node.pods) for node in plan.new_nodes), "no pod is planned twice"
    assert placed | {each.pod for each in plan.pending} == set(by_key)
    for resource in ("cpu", "nvidia.com/gpu", "memory"):
        assert all(used <= has for used, has in _requested(plan, by_key, resource))
    for gang in set(of.values()):
        members = {key for key, name in of.items() if name == gang}
        assert members <= placed or not members & placed


def test_a_gang_that_must_be_in_one_zone_gets_the_cheapest_zone_that_holds_all_of_it() -> None:
    pods, gangs = _gang("train", 2, 8)
    here, there = machine("m", 96, price=30, gpus=8, zones=["a"]), machine("n", 96, price=20, gpus=8, zones=["b"])
    plan = planned((here, there), pods, gangs=gangs, together={"train": "topology.kubernetes.io/zone"})

    assert [(node.launch.name, node.zones) for node in plan.new_nodes] == [("n", ("b",))] * 2


def test_a_gang_is_not_planned_over_several_zones_if_it_must_be_in_one() -> None:
    pods, gangs = _gang("train", 2, 8)
    pools = [
        pool("a", ("topology.kubernetes.io/zone", "In", ["a"]), limits={"nodes": 1}),
        pool("b", ("topology.kubernetes.io/zone", "In", ["b"]), limits={"nodes": 1}),
    ]

    assert len(planned((GPU8,), pods, gangs=gangs, pools=pools).new_nodes) == 2
    assert not planned(
        (GPU8,), pods, gangs=gangs, pools=pools, together={"train": "topology.kubernetes.io/zone"}
    ).new_nodes
