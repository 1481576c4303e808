"""Which placeholder pods are created and deleted, for random pods and gangs."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from build.depth import seeds
from build.pool_worlds import machine, pod, pool, standing, world
from shoal.autoscale.nodes.instance_types import SPOT
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.placeholders.changes import placeholder_changes
from shoal.autoscale.placeholders.placeholder import Placeholder, placeholder_object, placeholder_of

_GPU8 = machine("gpu-8", 96, price=13, gpus=8, spot=6)
_CPU = machine("cpu", 16, price=0.8)
_LONGEST_S = 900.0


def _waiting(draw: random.Random) -> PlanningInput:
    pods, gangs = [], {}
    for number in range(draw.randint(1, 5)):
        size = draw.choice([1, 1, 2, 4])
        gpus = draw.choice([0, 1, 4, 8])
        for member in range(size):
            made = pod(f"w{number}-{member}", str(draw.choice([1, 6])), gpus=gpus)
            pods.append(made)
            if size > 1:
                gangs[pod_key(made)] = f"gang-{number}"
    limit = draw.choice([2, 4, 100])
    return world((_GPU8, _CPU), pods, pools=[pool(limits={"nodes": str(limit)})], gangs=gangs)


def _with(given: PlanningInput, present: list[Placeholder], now_s: float, most: int) -> list[Placeholder]:
    changes = placeholder_changes(given, present, now_s, _LONGEST_S, most)
    left = [each for each in present if each not in changes.delete]
    return [*left, *(each.placeholder for each in changes.create)]


def _laws(given: PlanningInput, present: list[Placeholder], most: int) -> None:
    assert len(present) <= most
    assert len({each.name for each in present}) == len(present)
    assert len(given.nodes) + len(present) <= given.pools[0].limits["nodes"] or not present
    for_gang: Counter[str] = Counter()
    for each in present:
        for_gang.update(each.workloads)
    waiting = Counter(given.gangs.get(pod_key(each), pod_key(each)) for each in given.pods)
    for name, count in for_gang.items():
        assert count <= waiting[name], "a node that no workload needs"
        if name in given.gangs.values() and not given.nodes:
            assert count == waiting[name], "a gang gets all of its nodes or none"


@pytest.mark.parametrize("seed", seeds(25))
def test_placeholders_stand_for_whole_gangs_within_limits_and_for_nothing_twice(seed: int) -> None:
    draw = random.Random(seed)
    given, most = _waiting(draw), draw.choice([3, 100])
    first = _with(given, [], 0.0, most)
    _laws(given, first, most)
    assert _with(given, first, 10.0, most) == first, "the same state has the same placeholders"

    # One workload gets its nodes or is deleted.
    gone = draw.choice(given.pods)
    unit = given.gangs.get(pod_key(gone), pod_key(gone))
    left = [each for each in given.pods if given.gangs.get(pod_key(each), pod_key(each)) != unit]
    later = _with(replace(given, pods=tuple(left)), first, 20.0, most)
    _laws(replace(given, pods=tuple(left)), later, most)
    assert not any(unit in each.workloads for each in later)

    # No node comes: others are tried, and no placeholder stays longer.
    given_up = placeholder_changes(given, first, _LONGEST_S + 1, _LONGEST_S, most).given_up
    assert {each.name for each in given_up} == {each.name for each in first}
    assert not _with(replace(given, pods=()), first, 20.0, most)


def test_a_node_that_starts_for_a_placeholder_is_planned_for_its_pods_alone() -> None:
    given = world((_GPU8,), [pod(f"w-{n}", gpus=8) for n in range(2)])
    first = _with(given, [], 0.0, 100)
    starting = standing("n", _GPU8, capacity_type=SPOT, is_initialized=False)
    more = replace(given, nodes=(starting,), pods=(*given.pods, pod("x", gpus=8)))
    changes = placeholder_changes(more, first, 10.0, _LONGEST_S)
    assert not changes.delete
    assert [each.node.pods for each in changes.create] == [("default/x",)]


def test_a_placeholder_is_read_back_from_its_pod() -> None:
    given = world((_GPU8,), [pod("w", "4", gpus=2)])
    (new,) = placeholder_changes(given, (), 5.0, _LONGEST_S).create
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    owner = {"metadata": {"name": "default", "uid": "u"}, "spec": {"template": {"spec": {"taints": [taint]}}}}
    obj = placeholder_object(new.placeholder, "home", owner, new.node.launch, new.pods)
    limits = obj["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "4", "nvidia.com/gpu": "8"}, "the whole machine, so that no part of another one serves"
    assert obj["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    obj["metadata"] |= {"uid": "p", "creationTimestamp": "1970-01-01T00:00:05Z"}
    assert placeholder_of(obj) == replace(new.placeholder, uid="p")
    del obj["spec"]["nodeSelector"]["karpenter.sh/nodepool"]
    assert placeholder_of(obj) is None
