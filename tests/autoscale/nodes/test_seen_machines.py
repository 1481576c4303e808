"""Of machines that were seen, no more is expected than they offer."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from build.depth import seeds
from shoal.api.meta import ObjectMeta
from shoal.api.node import Node, NodeStatus
from shoal.autoscale.nodes.catalog import quantities_of
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.seen_machines import SeenMachines

_RESOURCES = ("cpu", "memory", "pods")


def node(pool: str, type_: str, created_s: int, offered: dict[str, int]) -> Node:
    labels = {"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": type_}
    meta = ObjectMeta(name=f"n{created_s}", labels=labels, creation_timestamp=datetime.fromtimestamp(created_s, UTC))
    return Node(meta, status=NodeStatus(allocatable=quantities_of(offered)))


@pytest.mark.parametrize("seed", seeds(20))
def test_no_more_is_expected_than_the_catalogue_says_and_the_newest_node_offers(seed: int) -> None:
    draw = random.Random(seed)
    types = [
        InstanceType(
            name,
            {each: draw.randint(500, 1000) for each in _RESOURCES},
            overhead={each: draw.randint(0, 100) for each in _RESOURCES},
        )
        for name in "ab"
    ]
    newest: dict[tuple[str, str], dict[str, int]] = {}
    nodes = []
    for created_s in range(draw.randint(0, 6)):
        pool, type_ = draw.choice("pq"), draw.choice("ab")
        newest[pool, type_] = {each: draw.randint(300, 1100) for each in _RESOURCES}
        nodes.append(node(pool, type_, created_s, newest[pool, type_]))
    draw.shuffle(nodes)
    seen = SeenMachines()
    seen.note(nodes, 0.0)
    seen.note((), 3000.0)
    for pool in "pq":
        for before, after in zip(types, seen.applied(NodePool(pool), types), strict=True):
            there = newest.get((pool, before.name), {})
            least = {name: min(each, there.get(name, each)) for name, each in before.allocatable().items()}
            assert (after.allocatable(), after.capacity) == (least, before.capacity)
    seen.note((), 3600.0)
    assert [*seen.applied(NodePool("p"), types)] == types
