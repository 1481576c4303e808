"""How static pools come to their number of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from build.pool_worlds import machine, pod, pool, standing, world
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import Offering
from shoal.autoscale.nodes.static_pools import StaticChange, static_change

CHEAP, DEAR = machine("cheap", 8, price=4, gpus=1), machine("dear", 8, price=9, gpus=1)


def _change(replicas: int, nodes: Sequence[ExistingNode] = (), **spec: Any) -> StaticChange:
    return static_change(world((DEAR, CHEAP), pools=[pool(replicas=replicas, **spec)], nodes=nodes))


def test_missing_nodes_are_of_the_cheapest_type() -> None:
    change = _change(3, [standing("n1", DEAR)])

    assert [node.launch.name for node in change.new_nodes] == ["cheap", "cheap"]
    assert not change.removed


def test_the_limits_of_the_pool_hold() -> None:
    assert len(_change(5, [standing("n1", CHEAP)], limits={"nodes": 3}).new_nodes) == 2
    assert _change(5, [standing("n1", CHEAP)], limits={"nodes": 1}).new_nodes == ()


def test_no_more_nodes_of_a_reservation_are_used_than_there_are() -> None:
    reserved = replace(CHEAP, offerings=(Offering("a", "reserved", 0, left=2), Offering("a", "on-demand", 4)))
    change = static_change(world((reserved,), pools=[pool(replicas=3)]))

    assert [node.offering.capacity_type for node in change.new_nodes] == ["reserved", "reserved", "on-demand"]


def test_of_too_many_nodes_those_that_start_go_first_then_those_with_fewest_pods() -> None:
    nodes = [
        standing("busy", CHEAP, pod("p", gpus=1)),
        standing("empty", CHEAP),
        standing("starting", CHEAP, is_initialized=False),
        standing("leaving", CHEAP, is_deleting=True),
    ]

    assert _change(3, nodes) == StaticChange()
    assert _change(2, nodes).removed == ("starting",)
    assert _change(1, nodes).removed == ("starting", "empty")


def test_other_pools_have_no_fixed_number() -> None:
    assert static_change(world((CHEAP,), pools=[pool()], nodes=[standing("n1", CHEAP)])) == StaticChange()
