"""What a forest counts, and that counting out undoes counting in."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from build.tas import BLOCK, LEVELS, RACK, TasWorld, host, hosts, pods
from shoal.engine.queues.facts import FlavorFacts
from shoal.engine.queues.tas.flavor_topology import FlavorTopology
from shoal.engine.queues.topology_facts import TopologyAssignment

NODES = hosts("b1-r1-x1=4", "b1-r2-x2=4", "b2-r1-x3=4")

charges = st.lists(st.tuples(st.sampled_from(["x1", "x2", "x3", "gone"]), st.integers(1, 9)), max_size=5)


@given(charges=charges, order=st.randoms(use_true_random=False))
def test_charges_undone_in_any_order_leave_nothing(charges: list[tuple[str, int]], order: st.Random) -> None:  # type: ignore[name-defined]
    forest = FlavorTopology(FlavorFacts("f", topology="t"), LEVELS, NODES)
    before = {name: column.tolist() for name, column in forest.free.items()}
    assignments = [TopologyAssignment(LEVELS[-1:], (((host,), count),)) for host, count in charges]
    for assignment in assignments:
        forest.charge(assignment, {"cpu": 500, "gpu": 1}, 1)
    order.shuffle(assignments)
    for assignment in assignments:
        forest.charge(assignment, {"cpu": 500, "gpu": 1}, -1)
    assert {name: column.tolist() for name, column in forest.free.items()} == before


def test_a_charge_takes_resources_and_slots() -> None:
    world = TasWorld(NODES)
    world.hold("ns/w", pods(3), "x1=1 x3=2")
    assert (world.free("cpu"), world.free("pods")) == ([3000, 4000, 2000], [99, 100, 98])


def test_pods_that_nobody_admitted_take_what_they_take() -> None:
    node = msgspec.structs.replace(host("b-r-x1", 4), taken={"cpu": 1500, "pods": 3})
    world = TasWorld([node])
    assert (world.free("cpu"), world.free("pods")) == ([2500], [97])


def test_an_assignment_by_other_levels_is_not_this_forests() -> None:
    forest = FlavorTopology(FlavorFacts("f"), (BLOCK, RACK), NODES)
    forest.charge(TopologyAssignment((BLOCK,), ((("b1",), 1),)), {"cpu": 1000}, 1)
    assert forest.free["cpu"].tolist() == [4000, 4000, 4000]


def test_nodes_of_one_domain_are_added_up() -> None:
    forest = FlavorTopology(FlavorFacts("f"), (BLOCK,), NODES)
    assert forest.paths == [[("b1",), ("b2",)]]
    assert forest.free["cpu"].tolist() == [8000, 4000]


def test_only_nodes_of_the_flavor_count() -> None:
    marked = msgspec.structs.replace(NODES[0], labels={**NODES[0].labels, "pool": "a"})
    forest = FlavorTopology(FlavorFacts("f", {"pool": "a"}), LEVELS, [marked, *NODES[1:]])
    assert forest.paths[-1] == [("b1", "r1", "x1")]
