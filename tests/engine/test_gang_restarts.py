"""A gang that ends whole and comes back goes where it was, as long as it fits there; nobody waits for a memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from build.gangs import GroupBuilder, gang, in_racks, racks
from build.nodes import NodeBuilder
from build.pods import ask
from build.scenario import Scenario
from build.snapshot import facts_of
from shoal.engine.cluster import Cluster
from shoal.engine.events import GroupGone, PodArrived
from shoal.engine.gang_members import MOST_NODES
from shoal.engine.groups import TopologyRequirement
from shoal.engine.ledger import Ledger

EIGHT = ask().gpus(8)
G = gang("g").pods(2, EIGHT)
RACK = G.required("rack")


def ran(there: GroupBuilder, fleet: list[NodeBuilder], *nodes: str) -> Scenario:
    """A gang that ran on these nodes, and has ended."""
    world = in_racks(*fleet)
    world.group(there.facts())
    there.run(world, *nodes)
    return ended(world, there)


def ended(world: Scenario, there: GroupBuilder) -> Scenario:
    for key, _, _ in there.members():
        world.go(key)
    return world


def back(world: Scenario, there: GroupBuilder) -> list[str]:
    """Where its pods go when they come back, under other names, as controllers name them."""
    for key, wanted, who in there.members():
        world.arrive(f"again-{key}", wanted, who=who)
    return sorted(place.node for place in world.round().placed)


class TestARestart:
    def test_stays_in_the_rack_although_an_earlier_one_is_free(self) -> None:
        assert back(ran(RACK, racks(2, 2), "r1n0", "r1n1"), RACK) == ["r1n0", "r1n1"]

    def test_goes_elsewhere_when_its_rack_is_taken_by_now(self) -> None:
        world = ran(RACK, racks(2, 2), "r1n0", "r1n1").bind("other", ask().gpus(1), "r1n1")
        assert back(world, RACK) == ["r0n0", "r0n1"]

    def test_goes_elsewhere_when_the_nodes_of_its_rack_are_gone(self) -> None:
        world = ran(RACK, racks(2, 2), "r1n0", "r1n1").lose("r1n0").lose("r1n1")
        assert back(world, RACK) == ["r0n0", "r0n1"]

    def test_stays_in_the_rack_that_lost_the_node_of_the_pod_that_ended_last(self) -> None:
        world = ran(RACK, racks(2, 3), "r1n0", "r1n1").lose("r1n1")
        assert back(world, RACK) == ["r1n0", "r1n2"]

    def test_stays_in_the_required_block_although_the_preferred_rack_is_free_elsewhere(self) -> None:
        there = G.required("block").preferred("rack")
        fleet = [*racks(2, block="a", first="a"), *racks(1, 1, block="b", first="b")]
        assert back(ran(there, fleet, "br0n0", "br1n0"), there) == ["br0n0", "br1n0"]

    def test_leaves_the_required_block_when_it_is_taken_by_now(self) -> None:
        there = G.required("block").preferred("rack")
        fleet = [*racks(2, block="a", first="a"), *racks(1, 1, block="b", first="b")]
        world = ran(there, fleet, "br0n0", "br1n0").bind("other", ask().gpus(1), "br0n0")
        assert back(world, there) == ["ar0n0", "ar0n1"]

    def test_goes_back_to_the_preferred_rack(self) -> None:
        there = G.preferred("rack")
        assert back(ran(there, racks(2, 2), "r1n0", "r1n1"), there) == ["r1n0", "r1n1"]

    def test_takes_every_part_back_to_its_own_rack(self) -> None:
        there = gang("g").part("p", 1, required="rack").part("q", 1, required="rack")
        there = there.pods(1, EIGHT, part="p").pods(1, EIGHT, part="q")
        world = ran(there, racks(1, 1, 1), "r2n0", "r1n0")
        back(world, there)
        assert world.placed() == {"again-g-0": "r2n0", "again-g-1": "r1n0"}

    def test_of_a_part_alone_goes_back_to_the_rack_of_the_part(self) -> None:
        there = gang("g").part("p", 1, required="rack").part("q", 1, required="rack")
        there = there.pods(1, EIGHT, part="p").pods(1, EIGHT, part="q")
        world = in_racks(*racks(1, 1, 1))
        world.group(there.facts())
        there.run(world, "r2n0", "r1n0").arrive(world.go("g-0"))
        assert [(place.pod, place.node) for place in world.round().placed] == [("g-0", "r2n0")]

    def test_of_an_optional_part_goes_back_to_the_rack_of_the_part(self) -> None:
        there = gang("g").part("p", 0, required="rack").minimum(0).pods(1, EIGHT, part="p")
        assert back(ran(there, racks(1, 1), "r1n0"), there) == ["r1n0"]

    def test_of_which_a_pod_still_runs_waits_for_its_rack(self) -> None:
        world = in_racks(*racks(2, 2))
        world.group(RACK.facts())
        RACK.run(world, "r1n0", "r1n1")
        world.go("g-1").bind("other", ask().gpus(1), "r1n1")
        RACK.arrive(world)
        assert world.round().placed == []

    def test_whose_former_pods_are_still_ending_goes_where_they_are(self) -> None:
        world = in_racks(*racks(2, 4))
        world.group(RACK.facts())
        for (key, wanted, who), node in zip(RACK.members(), ("r1n0", "r1n1"), strict=True):
            world.bind(key, wanted, node, who=who, terminating=True)
        assert back(world, RACK) == ["r1n2", "r1n3"]

    def test_goes_where_it_was_promised_room_rather_than_where_it_was(self) -> None:
        world = ran(RACK, racks(2, 2, 2), "r1n0", "r1n1")
        for key, wanted, who in RACK.members():
            world.apply(PodArrived(key, wanted, who=who, nominated="r2n0"))
        assert {place.node for place in world.round().placed} == {"r2n0", "r2n1"}

    def test_without_any_level_goes_anywhere(self) -> None:
        there = replace(G, requirement=TopologyRequirement(closest=True))
        assert back(ran(there, racks(2), "r0n1", "r0n0"), there) == ["r0n0", "r0n1"]


class TestTheMemory:
    def test_is_of_the_last_run_only(self) -> None:
        world = ran(RACK, racks(2, 2, 2), "r1n0", "r1n1")
        RACK.run(world, "r2n0", "r2n1")
        ended(world, RACK).lose("r2n0").lose("r2n1")
        assert back(world, RACK) == ["r0n0", "r0n1"]

    def test_outlives_a_placement_that_the_world_refuses(self) -> None:
        world = ran(RACK, racks(2, 2), "r1n0", "r1n1").bind("other", ask().gpus(1), "r1n1")
        back(world, RACK)
        world.reject("again-g-0").reject("again-g-1").go("other")
        assert {place.node for place in world.round().placed} == {"r1n0", "r1n1"}

    def test_is_gone_once_the_gang_runs_again(self) -> None:
        world = ran(RACK, racks(2, 2), "r1n0", "r1n1")
        RACK.arrive(world)
        world.confirm(world.round())
        assert remembered(world.cluster) == {}

    def test_is_no_longer_than_needed_however_many_pods_end(self) -> None:
        world = in_racks(*racks(4 * MOST_NODES))
        there = gang("g").pods(4 * MOST_NODES, EIGHT).required("rack")
        world.group(there.facts())
        there.run(world, *(f"r0n{number}" for number in range(4 * MOST_NODES)))
        ended(world, there)
        assert [len(nodes) for nodes in remembered(world.cluster).values()] == [MOST_NODES]

    def test_does_not_grow_with_the_names_of_parts_that_pods_make_up(self) -> None:
        world = in_racks(*racks(1))
        world.group(RACK.facts())
        for number in range(50):
            there = gang("g").pods(1, EIGHT, part=f"made-up-{number}")
            ended(world, there.run(world, "r0n0"))
        assert len(remembered(world.cluster)) == 1

    @pytest.mark.parametrize("first", ["the object", "the pods"])
    def test_does_not_keep_a_gang_that_is_gone(self, first: str) -> None:
        world = in_racks(*racks(2))
        world.group(RACK.facts())
        RACK.run(world, "r0n0", "r0n1")
        if first == "the pods":
            ended(world, RACK).apply(GroupGone("g"))
        else:
            ended(world.apply(GroupGone("g")), RACK)
        assert list(world.cluster.gangs) == []

    def test_goes_with_the_object(self) -> None:
        world = ran(RACK, racks(2, 2), "r1n0", "r1n1")
        RACK.arrive(world)
        world.apply(GroupGone("g")).group(RACK.facts())
        assert {place.node for place in world.round().placed} == {"r0n0", "r0n1"}

    def test_of_a_pod_that_a_trial_evicts_there_is_none(self) -> None:
        world = in_racks(*racks(2))
        world.group(RACK.facts())
        RACK.run(world, "r0n0", "r0n1")
        before = facts_of(world.cluster)
        ledger = Ledger(world.cluster)
        ledger.evict("g-0")
        ledger.evict("g-1")
        assert remembered(world.cluster) == {}
        ledger.rollback()
        assert facts_of(world.cluster) == before


def remembered(cluster: Cluster) -> dict[str, dict[str, None]]:
    return cluster.gangs["g"].was_on
