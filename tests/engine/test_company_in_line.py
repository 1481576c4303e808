"""Waiting in line where pods care about pods: nobody waits behind a head that is stuck for reasons of its own."""

from __future__ import annotations

from build.company import apart, called, spread, together
from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.groups import GroupFacts
from shoal.engine.pod_identity import PodIdentity, PodLabels

A, B = (node(name).label("host", name).label("zone", name) for name in "ab")
WEB, DB, CACHE = called(app="web"), called(app="db"), called(app="cache")
CORE = ask().cpu(1)
NO_WEB = ask().near(apart("host", app="web"))


def order(world: Scenario) -> list[str]:
    return [place.pod for place in world.round().placed]


def test_a_pod_kept_away_does_not_hold_back_the_one_behind_it() -> None:
    world = Scenario(A).bind("guard", NO_WEB, "a", who=DB)
    world.arrive("web", CORE, who=WEB).arrive("cache", CORE, who=CACHE).arrive("plain", CORE)
    assert order(world) == ["cache", "plain"]
    assert world.waiting() == ["web"]


def test_pods_in_line_before_anybody_had_rules_are_told_apart_afterwards() -> None:
    world = Scenario()
    world.arrive("web", CORE, who=WEB).arrive("cache", CORE, who=CACHE)
    assert order(world) == []
    world.see(A).bind("guard", NO_WEB, "a", who=DB)
    assert order(world) == ["cache"]


def test_labels_that_no_rule_reads_make_no_lines_of_their_own() -> None:
    world = Scenario().bind("guard", NO_WEB, "a", who=DB)
    for index in range(5):
        world.arrive(f"p{index}", CORE, who=called(app="cache", replica=str(index)))
    assert len(world.cluster.pending.heads()) == 1


def test_namespaces_are_told_apart() -> None:
    world = Scenario(A).bind("guard", NO_WEB, "a", who=DB)
    world.arrive("mine", CORE, who=WEB).arrive("theirs", CORE, who=called("other", app="web"))
    assert order(world) == ["theirs"]


def test_whoever_must_be_near_to_a_pod_placed_later_in_the_round_is_placed_as_well() -> None:
    world = Scenario(A, B)
    world.arrive("first", CORE.near(together("zone", app="db")), priority=5, who=WEB)
    world.arrive("second", ask().cpu(2), who=DB)
    assert order(world) == ["second", "first"]


def test_a_spread_that_the_round_evens_out_lets_the_next_one_in() -> None:
    even = CORE.near(spread("zone", app="web"))
    world = Scenario(A.cpu(2), B.cpu(9)).bind("there", CORE, "b", who=WEB)
    world.arrive("big", ask().cpu(9).near(spread("zone", app="web")), priority=9, who=called(app="db"))
    world.arrive("even", even, who=WEB).arrive("even2", even, who=WEB).arrive("even3", even, who=WEB)
    assert order(world) == ["even", "even2", "even3"]


def test_nobody_is_asked_again_when_nobody_was_helped() -> None:
    world = Scenario(A).arrive("alone", CORE.near(together("zone", app="db")), who=WEB)
    assert order(world) == []
    assert world.waiting() == ["alone"]


def test_two_who_keep_apart_go_to_two_nodes_and_the_third_waits() -> None:
    world = Scenario(A, B)
    for key in ("p0", "p1", "p2"):
        world.arrive(key, CORE.near(apart("host", app="web")), who=WEB)
    assert order(world) == ["p0", "p1"]
    assert sorted(world.placed().values()) == ["a", "b"]
    assert order(world.go("p0")) == ["p2"]


def test_a_gang_whose_members_keep_apart_needs_as_many_nodes() -> None:
    def member(gang: str) -> PodIdentity:
        return PodIdentity(PodLabels.of("default", {"gang": gang}), group=f"default/{gang}")

    world = Scenario(A, B)
    for gang, size in (("three", 3), ("two", 2)):
        world.group(GroupFacts(f"default/{gang}", minimum=size))
        for index in range(size):
            world.arrive(f"{gang}-{index}", CORE.near(apart("host", gang=gang)), who=member(gang))
    assert order(world) == ["two-0", "two-1"]
    assert world.waiting() == ["three-0", "three-1", "three-2"]


def test_a_gang_that_must_be_near_to_a_later_pod_is_placed_as_well() -> None:
    world = Scenario(A, B).group(GroupFacts("default/g", minimum=2))
    for index in range(2):
        who = PodIdentity(PodLabels.of("default", {"app": "web"}), group="default/g")
        world.arrive(f"g{index}", CORE.near(together("zone", app="db")), priority=5, who=who)
    world.arrive("db", CORE, who=DB)
    assert order(world) == ["db", "g0", "g1"]


def test_a_rejected_pod_is_counted_no_more() -> None:
    world = Scenario(A, B).arrive("p0", CORE.near(apart("zone", app="web")), who=WEB)
    assert order(world) == ["p0"]
    wanted = CORE.near(apart("zone", app="web"))
    assert len(world.possible(wanted, WEB)) == 1
    assert world.reject("p0").possible(wanted, WEB) == {"a", "b"}
