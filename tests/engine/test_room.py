"""A pod fits where every amount it asks for is free; what it does not ask for cannot keep it away."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, fleet, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.pod_mix import PodClass, PodMix

PLAIN = node("n").cpu(4).memory_gib(8).pods(3)

ROOM = {
    "exactly all cores of a node fit": (PLAIN, ask().cpu(4), True),
    "a thousandth of a core too many does not fit": (PLAIN, ask().cpu(4.001), False),
    "exactly all memory fits": (PLAIN, ask().memory_gib(8), True),
    "a byte of memory too many does not fit": (PLAIN, ask().resource("memory", (8 << 30) + 1), False),
    "a pod that asks for nothing fits": (PLAIN, ask(), True),
    "a request of zero is no request": (PLAIN.cpu(0), ask().cpu(0), True),
    "a node without pod slots takes nobody": (PLAIN.pods(0), ask(), False),
    "a node that says nothing about pod slots takes nobody": (PLAIN.without("pods"), ask(), False),
    "an extended resource the node has fits": (
        PLAIN.resource("example.com/fpga", 2),
        ask().resource("example.com/fpga", 2),
        True,
    ),
    "an extended resource the node has too little of does not": (
        PLAIN.resource("example.com/fpga", 2),
        ask().resource("example.com/fpga", 3),
        False,
    ),
    "an extended resource the node never heard of does not": (PLAIN, ask().resource("example.com/fpga", 1), False),
    "huge pages are a resource like any other": (
        PLAIN.resource("hugepages-2Mi", 1 << 21),
        ask().resource("hugepages-2Mi", 1 << 21),
        True,
    ),
    "whole GPUs of a node fit": (PLAIN.gpus(8), ask().gpus(8), True),
    "one GPU more than the node has does not": (PLAIN.gpus(8), ask().gpus(9), False),
    "a GPU on a node without any does not": (PLAIN, ask().gpus(1), False),
    "a share on a node without GPUs does not": (PLAIN, ask().share(1), False),
    "a share of nearly a whole GPU fits an empty one": (PLAIN.gpus(1), ask().share(999), True),
    "GPUs and too many cores do not fit": (PLAIN.gpus(8), ask().gpus(1).cpu(5), False),
}


@pytest.mark.parametrize(("there", "wanted", "fits"), ROOM.values(), ids=ROOM)
def test_room(there: NodeBuilder, wanted: AskBuilder, fits: bool) -> None:
    world = Scenario(there).arrive("p", wanted)
    plan = world.round()
    assert bool(plan.placed) is fits
    assert bool(plan.refused) is not fits


def test_a_node_fills_up_to_its_last_pod_slot() -> None:
    world = Scenario(PLAIN)
    for index in range(4):
        world.arrive(f"p{index}", ask())
    plan = world.round()
    assert [place.pod for place in plan.placed] == ["p0", "p1", "p2"]
    assert [refusal.pod for refusal in plan.refused] == ["p3"]


def test_room_comes_back_when_a_pod_goes() -> None:
    world = Scenario(PLAIN).arrive("first", ask().cpu(4))
    world.confirm(world.round()).arrive("second", ask().cpu(1))
    assert world.round().refused
    world.go("first")
    assert [place.pod for place in world.round().placed] == ["second"]
    assert world.free("n") == 3000


def test_an_overcommitted_node_takes_only_pods_that_do_not_ask_for_what_it_lacks() -> None:
    world = Scenario(PLAIN).bind("greedy", ask().cpu(6), "n")
    assert world.free("n") == -2000
    assert world.fitting(ask().cpu(0.001)) == set()
    assert world.fitting(ask().memory_gib(8)) == {"n"}
    assert world.fitting(ask()) == {"n"}


def test_a_node_that_shrinks_under_its_pods_owes_and_recovers() -> None:
    world = Scenario(PLAIN).bind("p", ask().cpu(3), "n").see(PLAIN.cpu(2))
    assert world.free("n") == -1000
    world.see(PLAIN.cpu(5))
    assert world.free("n") == 2000
    world.go("p")
    assert world.free("n") == 5000


def test_a_pod_without_requests_is_scored_by_a_stand_in_and_charged_nothing() -> None:
    world = Scenario(PLAIN).bind("p", ask(), "n")
    assert world.free("n") == 4000
    assert world.free("n", "pods") == 2


def test_the_column_block_grows_with_the_fleet_and_every_node_is_still_found() -> None:
    world = Scenario(node("first").cpu(1)).arrive("early", ask().cpu(1))
    world.round()
    world.see(*fleet(300, node("n").cpu(2)))
    assert world.fitting(ask().cpu(2)) == {f"n{index}" for index in range(300)}
    assert world.fitting(ask().cpu(1)) == {f"n{index}" for index in range(300)}
    for index in range(301):
        world.arrive(f"p{index}", ask().cpu(2))
    plan = world.round()
    assert len(plan.placed) == 300
    assert {place.node for place in plan.placed} == {f"n{index}" for index in range(300)}
    assert [refusal.pod for refusal in plan.refused] == ["p300"]


def test_a_node_that_takes_over_the_row_of_another_inherits_nothing() -> None:
    gpu = node("old").gpus(4).model("A100").label("zone", "a").taint("gpu").resource("example.com/fpga", 3)
    world = Scenario(gpu).bind("p", ask().gpus(2).port(80).tolerate("gpu"), "old").lose("old").see(node("new").cpu(1))
    assert world.placed() == {}
    assert world.free("new") == 1000
    assert world.pieces("new") == []
    assert world.fitting(ask().port(80)) == {"new"}
    assert world.fitting(ask().share(1)) == set()
    assert world.fitting(ask().select("zone", "Exists")) == set()
    assert world.fitting(ask().model("A100")) == set()
    assert world.fitting(ask().resource("example.com/fpga", 1)) == set()


class TestWidening:
    """New resource names and wider nodes appear while shapes already exist."""

    def test_a_resource_first_named_by_a_later_node_is_found(self) -> None:
        world = Scenario(node("plain"))
        assert world.fitting(ask().cpu(1)) == {"plain"}
        assert world.fitting(ask().resource("example.com/fpga", 1)) == set()
        world.see(node("rich").resource("example.com/fpga", 1))
        assert world.fitting(ask().resource("example.com/fpga", 1)) == {"rich"}
        assert world.fitting(ask().cpu(1)) == {"plain", "rich"}

    def test_a_resource_first_named_by_a_later_pod_matches_nothing_and_harms_nobody(self) -> None:
        world = Scenario(node("n"))
        assert world.fitting(ask().cpu(1)) == {"n"}
        assert world.fitting(ask().resource("example.com/unheard-of", 1)) == set()
        assert world.fitting(ask().cpu(1)) == {"n"}

    def test_more_resources_than_one_word_of_columns_each_keep_their_amount(self) -> None:
        world = Scenario(node("n"))
        before = ask().cpu(64)
        assert world.fitting(before) == {"n"}
        names = [f"example.com/r{index:02}" for index in range(30)]
        for index, name in enumerate(names):
            rich = node(f"m{index}").resource(name, index + 1)
            world.see(rich)
            assert world.fitting(ask().resource(name, index + 1)) == {f"m{index}"}
            assert world.fitting(ask().resource(name, index + 2)) == set()
        assert world.fitting(before) == {"n", *(f"m{index}" for index in range(30))}

    def test_pods_held_before_a_widening_give_back_exactly_what_they_took(self) -> None:
        world = Scenario(node("n").cpu(4)).bind("p", ask().cpu(3), "n")
        world.see(*(node(f"m{index}").resource(f"example.com/r{index}", 1) for index in range(20)))
        assert world.free("n") == 1000
        world.go("p")
        assert world.free("n") == 4000

    @pytest.mark.parametrize("policy", ["Shoal", "FGD", "GpuPacking", "BestFit", "DotProd", "GpuClustering"])
    def test_nodes_with_more_than_eight_gpus_may_follow_smaller_ones(self, policy: str) -> None:
        mix = PodMix.of([PodClass(1000, 1000, 8), PodClass(1000, 500, 1)])
        world = Scenario(node("small").gpus(8), policy=policy, mix=mix)
        assert world.fitting(ask().gpus(8)) == {"small"}
        assert world.fitting(ask().gpus(16)) == set()
        world.see(node("big").gpus(16))
        assert world.fitting(ask().gpus(16)) == {"big"}
        world.arrive("wide", ask().gpus(12)).arrive("eight", ask().gpus(8)).arrive("share", ask().share(500))
        plan = world.round()
        assert {place.pod: place.node for place in plan.placed} == {
            "wide": "big",
            "eight": "small",
            "share": "big",
        }
        assert sum(world.pieces("big")) + sum(world.pieces("small")) == 24_000 - 12_000 - 500 - 8_000
