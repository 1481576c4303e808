"""Two flavors over one set of nodes: what one gives away, the other does not have."""

from __future__ import annotations

import msgspec

from build.tas import HOST, TasWorld, hosts, pods, preferred, required
from shoal.engine.queues.tas.overlap import OVERLAPS


def test_two_flavors_do_not_both_give_away_one_node() -> None:
    world = TasWorld(hosts("b-r-x1=1", "b-r-x2=1")).flavor("g")
    found = world.place(pods(1, "one", preferred(HOST)), pods(1, "two", preferred(HOST)), flavors=("f", "g"))
    assert found == {"one": "x1=1", "two": "x2=1"}


def test_what_another_flavor_holds_on_a_node_is_not_free() -> None:
    world = TasWorld(hosts("b-r-x1=2", "b-r-x2=1")).flavor("g")
    world.hold("ns/w", pods(2), "x1=2", flavor="g")
    assert world.places(pods(1, topology=required(HOST))) == "x2=1"


def without_gate(world: TasWorld, gate: str) -> TasWorld:
    settings = world.queues.settings
    world.queues.settings = msgspec.structs.replace(settings, gates=settings.gates - {gate})
    return world


def test_what_another_flavor_holds_is_free_where_overlaps_are_not_handled() -> None:
    world = without_gate(TasWorld(hosts("b-r-x1=2", "b-r-x2=1")).flavor("g"), OVERLAPS)
    world.hold("ns/w", pods(2), "x1=2", flavor="g")
    assert world.places(pods(2, topology=required(HOST))) == "x1=2"


def test_two_flavors_of_one_workload_never_give_away_one_node() -> None:
    world = without_gate(TasWorld(hosts("b-r-x1=1", "b-r-x2=1")).flavor("g"), OVERLAPS)
    found = world.place(pods(1, "one", preferred(HOST)), pods(1, "two", preferred(HOST)), flavors=("f", "g"))
    assert found == {"one": "x1=1", "two": "x2=1"}
