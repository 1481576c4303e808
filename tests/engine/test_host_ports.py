"""Two pods cannot listen on one port of one node: same number, same protocol, overlapping addresses."""

from __future__ import annotations

import pytest

from build.nodes import node
from build.pods import AskBuilder, ask
from build.scenario import Scenario

CASES = {
    "the same port is taken": (ask().port(80), ask().port(80), False),
    "another number is free": (ask().port(80), ask().port(81), True),
    "another protocol is free": (ask().port(80), ask().port(80, protocol="UDP"), True),
    "the same port on another address is free": (ask().port(80, "10.0.0.1"), ask().port(80, "10.0.0.2"), True),
    "the same port on the same address is taken": (ask().port(80, "10.0.0.1"), ask().port(80, "10.0.0.1"), False),
    "every address includes this one": (ask().port(80), ask().port(80, "10.0.0.1"), False),
    "this address is among every address": (ask().port(80, "10.0.0.1"), ask().port(80), False),
    "0.0.0.0 is every address too": (ask().port(80, "0.0.0.0"), ask().port(80, "10.0.0.1"), False),  # noqa: S104
    "one taken port of several is enough": (ask().port(80).port(443), ask().port(8080).port(443), False),
    "a pod without host ports never minds": (ask().port(80), ask(), True),
}


@pytest.mark.parametrize(("holder", "wanted", "fits"), CASES.values(), ids=CASES)
def test_a_port_beside_another(holder: AskBuilder, wanted: AskBuilder, fits: bool) -> None:
    world = Scenario(node("n")).bind("holder", holder, "n")
    assert bool(world.fitting(wanted)) is fits


def test_a_port_is_free_on_other_nodes_and_free_again_when_its_pod_goes() -> None:
    world = Scenario(node("n"), node("m")).bind("holder", ask().port(80), "n")
    assert world.fitting(ask().port(80)) == {"m"}
    world.go("holder")
    assert world.fitting(ask().port(80)) == {"n", "m"}


def test_equal_pods_with_a_port_spread_over_the_nodes_in_one_round() -> None:
    world = Scenario(node("n0"), node("n1"), node("n2"))
    for index in range(4):
        world.arrive(f"p{index}", ask().port(80))
    plan = world.round()
    assert [place.node for place in plan.placed] == ["n0", "n1", "n2"]
    assert [refusal.pod for refusal in plan.refused] == ["p3"]


def test_a_port_taken_twice_by_others_is_free_only_when_both_are_gone() -> None:
    world = Scenario(node("n")).bind("one", ask().port(80), "n").bind("two", ask().port(80), "n")
    world.go("one")
    assert world.fitting(ask().port(80)) == set()
    world.go("two")
    assert world.fitting(ask().port(80)) == {"n"}


def test_ports_come_back_with_a_node_whose_pod_still_runs() -> None:
    world = Scenario(node("n")).bind("holder", ask().port(80), "n").lose("n").see(node("n"))
    assert world.fitting(ask().port(80)) == set()


def test_ports_leave_with_the_pod_even_while_its_node_is_away() -> None:
    world = Scenario(node("n")).bind("holder", ask().port(80), "n").lose("n").go("holder").see(node("n"))
    assert world.fitting(ask().port(80)) == {"n"}
