"""A leader and its workers: one domain for both, and room for all."""

from __future__ import annotations

import msgspec
import pytest

from build.tas import HOST, LEVELS, RACK, TasWorld, host, hosts, pods, preferred, required, spelt
from shoal.api.taints import Taint, Toleration
from shoal.engine.queues.tas.place import Request, place
from shoal.engine.queues.tas.refusals import TopologyRefusal
from shoal.engine.queues.topology_facts import TopologyRequest
from shoal.engine.queues.workloads import Total


def test_a_leader_goes_into_its_workers_rack() -> None:
    world = TasWorld(hosts("b-r1-x1=2", "b-r1-x2=2", "b-r2-x3=3", "b-r2-x4=2"))
    requirement = required(RACK, group="g")
    found = world.place(pods(1, "leader", requirement), pods(4, "workers", requirement))
    assert found == {"leader": "x3=1", "workers": "x3=2 x4=2"}


SMALL_HOSTS = [("x1", 2), ("x2", 4), ("x3", 3)]
FLAT = {"flat": (HOST,), "in racks": LEVELS}


@pytest.mark.parametrize("requirement", [preferred(HOST, group="g"), TopologyRequest(unconstrained=True, group="g")])
@pytest.mark.parametrize("levels", FLAT)
def test_a_leader_goes_to_a_host_where_it_leaves_room_for_all_workers(
    levels: str, requirement: TopologyRequest
) -> None:
    world = TasWorld([host(f"b-r-{name}", cpu) for name, cpu in SMALL_HOSTS], FLAT[levels])
    found = world.place(pods(1, "leader", requirement), pods(4, "workers", requirement, cpu=2000))
    assert found == {"leader": "x3=1", "workers": "x1=1 x2=2 x3=1"}


def test_a_leader_that_costs_too_much_everywhere_finds_no_place() -> None:
    requirement = preferred(HOST, group="g")
    world = TasWorld([host(f"b-r-{name}", cpu) for name, cpu in SMALL_HOSTS], (HOST,))
    refused = world.refuses(pods(1, "leader", requirement, cpu=2000), pods(4, "workers", requirement, cpu=2000))
    assert (refused.fits, refused.wanted) == (3, 4)


def test_a_leader_goes_with_workers_that_name_no_level() -> None:
    world = TasWorld(hosts("b-r-x1=2", "b-r-x2=4"))
    sets = [pods(1, "leader", TopologyRequest(group="g")), pods(3, "workers", TopologyRequest(group="g"))]
    found = place(world.queues, [Request(Total.of(each, each.count), "f", each.count, implied=True) for each in sets])
    assert not isinstance(found, TopologyRefusal)
    assert {name: spelt(where) for name, where in found.items()} == {"leader": "x2=1", "workers": "x2=3"}


def test_a_leader_needs_only_what_it_asks_of_a_node_itself() -> None:
    nodes = [
        host("b-r-cpu", 4),
        msgspec.structs.replace(host("b-r-gpu", 0, gpu=4), taints=(Taint("gpu", "NoSchedule"),)),
    ]
    requirement = required(RACK, group="g")
    workers = msgspec.structs.replace(
        pods(4, "workers", requirement, gpu=1), tolerations=(Toleration("gpu", "Exists"),)
    )
    assert TasWorld(nodes).place(pods(1, "leader", requirement), workers) == {"leader": "cpu=1", "workers": "gpu=4"}
