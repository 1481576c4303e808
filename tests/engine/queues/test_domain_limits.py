"""What no topology domain can hold however empty it is, compared with placements in an empty topology."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from build.depth import seeds
from build.tas import BLOCK, HOST, RACK, TasWorld, host, hosts, pods, preferred, required
from shoal.api.taints import Taint
from shoal.engine.queues.domain_limits import DomainLimits
from shoal.engine.queues.facts import (
    PODS,
    ClusterQueueFacts,
    FlavorQuotas,
    LocalQueueFacts,
    PodSet,
    ResourceGroup,
    WorkloadFacts,
)
from shoal.engine.queues.tas.refusals import TopologyRefusal
from shoal.engine.queues.topology_facts import QueueNode, TopologyRequest

HOSTS = ["b1-r1-x1=1", "b1-r1-x2=1", "b1-r2-x3=3", "b2-r3-x4=1"]


def with_queue(world: TasWorld) -> TasWorld:
    group = ResourceGroup(("cpu",), (FlavorQuotas("f"),))
    world.queues.put(ClusterQueueFacts("cq", groups=(group,)))
    world.queues.put(LocalQueueFacts("t/q", "cq"))
    world.queues.refresh()
    return world


def limits(nodes: list[QueueNode], *pod_sets: PodSet) -> list[tuple[str, int, str, int, str, bool]]:
    world = with_queue(TasWorld(nodes))
    found = DomainLimits(world.queues).of(WorkloadFacts("t/w", "t/q", pod_sets=pod_sets))
    return [(each.level, each.needs, each.domain, each.fits, each.wider, each.may_spread) for each in found]


CASES = {
    "no host, but a rack": (pods(4, topology=required(HOST)), (HOST, 4, "x3", 3, BLOCK, False)),
    "the nearest wider level": (pods(2, topology=required(HOST)), None),
    "no rack, but a block": (pods(4, topology=required(RACK)), (RACK, 4, "b1/r2", 3, BLOCK, False)),
    "no block, but several": (pods(6, topology=required(BLOCK)), (BLOCK, 6, "b1", 5, "", True)),
    "more than there is": (pods(7, topology=required(BLOCK)), (BLOCK, 7, "b1", 5, "", False)),
    "more than there is, spread": (pods(7, topology=preferred(RACK)), ("", 7, "", 6, "", False)),
    "a slice that no host holds": (
        pods(4, topology=TopologyRequest(slice_level=HOST, slice_size=4)),
        (HOST, 4, "x3", 3, BLOCK, False),
    ),
    "a set that may start with fewer pods": (
        msgspec.structs.replace(pods(4, topology=required(HOST)), min_count=3),
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_largest_domain_is_named(case: str) -> None:
    pod_set, limit = CASES[case]
    assert limits(hosts(*HOSTS), pod_set) == ([] if limit is None else [limit])


NODES_TO_COME_BACK: dict[str, dict[str, Any]] = {
    "cordoned": {"unschedulable": True, "taints": (Taint("node.kubernetes.io/unschedulable", "NoSchedule"),)},
    "not ready": {"ready": False},
    "full": {"taken": {"cpu": 4000, PODS: 1}},
    "with failed devices": {"allocatable": {"cpu": 1000, PODS: 100}, "installed": {"cpu": 4000}},
}


@pytest.mark.parametrize("state", NODES_TO_COME_BACK)
def test_a_node_that_may_be_free_or_healthy_again_counts(state: str) -> None:
    node = msgspec.structs.replace(host("b1-r1-x1", 4), **NODES_TO_COME_BACK[state])
    assert limits([node], pods(4, topology=required(HOST))) == []
    assert limits([node], pods(5, topology=required(HOST))) == [(HOST, 5, "x1", 4, "", False)]


@pytest.mark.parametrize("seed", seeds(150))
def test_a_limit_is_found_exactly_where_an_empty_topology_has_no_place(seed: int) -> None:
    chance = random.Random(seed)
    nodes = [
        host(f"b{chance.randint(1, 2)}-r{chance.randint(1, 3)}-x{at}", chance.randint(1, 4))
        for at in range(chance.randint(1, 6))
    ]
    level = chance.choice((BLOCK, RACK, HOST))
    size = chance.choice((1, 1, 2, 3))
    wishes = [
        required(level, slice_level=HOST if size > 1 else "", slice_size=size if size > 1 else 0),
        preferred(level),
        TopologyRequest(slice_level=level, slice_size=size),
    ]
    pod_set = pods(chance.randint(1, 9) * size, topology=chance.choice(wishes))
    world = with_queue(TasWorld(nodes))
    found = DomainLimits(world.queues).of(WorkloadFacts("t/w", "t/q", pod_sets=(pod_set,)))
    is_refused = isinstance(world.place(pod_set, empty=True), TopologyRefusal)
    assert bool(found) is is_refused, (pod_set, found)
    for limit in found:
        assert limit.fits < limit.needs
        if limit.wider and pod_set.topology is not None:
            field = "slice_level" if limit.is_slice else "required"
            wider = msgspec.structs.replace(pod_set.topology, **{field: limit.wider})
            assert not isinstance(
                world.place(msgspec.structs.replace(pod_set, topology=wider), empty=True), TopologyRefusal
            )
