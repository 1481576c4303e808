"""Domains of a topology, and how pods are shared out over them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.gangs import FLEET, LEVELS, in_racks, racks
from build.nodes import NodeBuilder, node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.groups import TopologyRequirement
from shoal.engine.topology.fewest import fewest
from shoal.engine.topology.tree import NO_DOMAIN, Tree

DOMAINS: dict[str, tuple[list[NodeBuilder], list[set[str]]]] = {
    "nodes with equal values stand together": (racks(2, 1), [{"r0n0", "r0n1", "r1n0"}, {"r0n0", "r0n1"}, {"r1n0"}]),
    "rack 0 of one zone is not rack 0 of another": (
        [
            node("a").label("zone", "x").label("block", "b").label("rack", "0"),
            node("c").label("zone", "y").label("block", "b").label("rack", "0"),
        ],
        [{"a"}, {"c"}],
    ),
    "a node without a label has no domain there nor below": (
        [node("a").label("zone", "x").label("rack", "0"), node("c").label("zone", "x").label("block", "b")],
        [{"a", "c"}, {"c"}],
    ),
}


def domains(world: Scenario, levels: tuple[str, ...] = LEVELS) -> list[set[str]]:
    tree = world.placement.trees.over(levels)
    return [
        {world.cluster.names[row] for row in tree.rows_of(level, domain).tolist()}
        for level in range(len(levels))
        for domain in range(len(tree.first_rank[level]))
    ]


def unique(sets: list[set[str]]) -> list[tuple[str, ...]]:
    return sorted({tuple(sorted(one)) for one in sets})


@pytest.mark.parametrize(("nodes", "expected"), DOMAINS.values(), ids=DOMAINS)
def test_who_stands_together(nodes: list[NodeBuilder], expected: list[set[str]]) -> None:
    assert unique(domains(in_racks(*nodes))) == unique(expected)


def test_a_node_without_a_host_name_is_its_own_host() -> None:
    hostname = "kubernetes.io/hostname"
    world = Scenario(node("a"), node("b"), node("c").label(hostname, "c"))
    assert unique(domains(world, (hostname,))) == [("a",), ("b",), ("c",)]
    tree = world.placement.trees.over((hostname,))
    names = {tree.name(0, domain) for domain in range(3)}
    assert names == {("a",), ("b",), ("c",)}


def test_the_tree_follows_nodes_and_labels_and_nothing_else() -> None:
    world = in_racks(*racks(1, 1))
    tree = world.placement.trees.of(TopologyRequirement(FLEET, "rack"))
    assert tree is not None
    codes = tree.codes
    world.bind("p", ask().cpu(1), "r0n0")
    assert world.placement.trees.of(TopologyRequirement(FLEET, "rack")) is tree
    assert tree.codes is codes
    world.see(racks(1, 1)[0].label("rack", "r1"))
    assert {"r0n0", "r1n0"} in domains(world)
    world.lose("r1n0")
    assert {"r0n0", "r1n0"} not in domains(world)


def test_sums_leave_out_nodes_without_a_domain() -> None:
    world = in_racks(*racks(2, 1), node("alone"))
    tree = world.placement.trees.over(LEVELS)
    amounts = np.full(world.cluster.capacity, 5, np.int64)
    assert sorted(tree.sums(2, amounts).tolist()) == [5, 10]
    assert tree.sums(2, amounts, np.array([0, 3])).sum() == 5
    assert tree.codes[2][3] == NO_DOMAIN


def test_a_topology_nobody_declared_has_no_tree() -> None:
    assert in_racks().placement.trees.of(TopologyRequirement("other", "rack")) is None


def test_levels_without_a_topology_are_labels() -> None:
    tree = in_racks(*racks(1)).placement.trees.of(TopologyRequirement(required="block", preferred="rack"))
    assert isinstance(tree, Tree)
    assert tree.levels == ("block", "rack")


SHARES: dict[str, tuple[int, list[int], list[int], int, list[tuple[int, int]]]] = {
    "one place that suffices, the tightest": (3, [8, 3, 5], [], 1, [(1, 3)]),
    "the largest first, then the tightest for the rest": (10, [5, 8, 2, 3], [], 1, [(1, 8), (2, 2)]),
    "a place that is spent is not taken again": (7, [5, 5], [], 1, [(0, 5), (1, 2)]),
    "places in use come first": (3, [8, 3, 5], [0], 1, [(0, 3)]),
    "what places in use do not hold goes to others": (10, [8, 3, 5], [1], 1, [(1, 3), (0, 7)]),
    "all there is when it does not suffice": (20, [8, 3], [], 1, [(0, 8), (1, 3)]),
    "only whole units": (6, [5, 3, 2], [], 2, [(0, 4), (2, 2)]),
    "nothing to share out": (0, [8], [], 1, []),
}


@pytest.mark.parametrize(("pods", "takes", "used", "unit", "expected"), SHARES.values(), ids=SHARES)
def test_how_pods_are_shared_out(
    pods: int, takes: list[int], used: list[int], unit: int, expected: list[tuple[int, int]]
) -> None:
    mask = np.zeros(len(takes), np.bool_)
    mask[used] = True
    assert fewest(pods, np.array(takes), np.arange(len(takes)), mask, unit) == expected


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 40))
def test_no_way_of_sharing_out_uses_fewer_places(takes: list[int], pods: int) -> None:
    shares = fewest(pods, np.array(takes), np.arange(len(takes)), np.zeros(len(takes), np.bool_))
    assert len({place for place, _ in shares}) == len(shares)
    assert all(0 < count <= takes[place] for place, count in shares)
    assert sum(count for _, count in shares) == min(pods, sum(takes))
    largest_first = np.cumsum(sorted(takes, reverse=True))
    if 0 < pods <= sum(takes):
        assert len(shares) == int(np.searchsorted(largest_first, pods)) + 1
