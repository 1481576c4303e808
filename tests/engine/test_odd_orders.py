"""Watches repeat themselves and race each other: whatever the order, the facts end up right.

Each table row is a story told in an unusual order; `PLAIN` tells the same outcome in the usual one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from build.nodes import node
from build.pods import ask
from build.scenario import Scenario, made
from build.snapshot import facts_by_name
from shoal.engine.events import PodBound

N = node("n").cpu(4).gpus(2).rank(0)
M = node("m").cpu(4).gpus(2).rank(1)
POD = ask().cpu(1).share(300).port(80)

Explanation = Callable[[Scenario], object]


def bound_on_n() -> Scenario:
    return Scenario(N, M).bind("p", POD, "n", devices=(1,))


def empty() -> Scenario:
    return Scenario(N, M)


STORIES: dict[str, tuple[Explanation, Callable[[], Scenario]]] = {
    "a pod is bound before its node is seen": (
        lambda w: w.bind("p", POD, "n", devices=(1,)).see(M, N),
        bound_on_n,
    ),
    "a pod is bound twice": (
        lambda w: w.see(N, M).bind("p", POD, "n", devices=(1,)).bind("p", POD, "n", devices=(1,)),
        bound_on_n,
    ),
    "the second telling leaves the devices out": (
        lambda w: w.see(N, M).bind("p", POD, "n", devices=(1,)).bind("p", POD, "n"),
        bound_on_n,
    ),
    "the second telling knows the devices better": (
        lambda w: w.see(N, M).bind("p", POD, "n").bind("p", POD, "n", devices=(1,)),
        bound_on_n,
    ),
    "a pod arrives after it was bound": (
        lambda w: w.see(N, M).bind("p", POD, "n", devices=(1,)).arrive("p", POD),
        bound_on_n,
    ),
    "a pod arrives after it was bound to a node not seen yet": (
        lambda w: w.bind("p", POD, "n", devices=(1,)).arrive("p", POD).see(N, M),
        bound_on_n,
    ),
    "a node is seen twice": (
        lambda w: w.see(N, M, N).bind("p", POD, "n", devices=(1,)).see(N, M),
        bound_on_n,
    ),
    "a pod moves": (
        lambda w: w.see(N, M).bind("p", POD, "m", devices=(0,)).bind("p", POD, "n", devices=(1,)),
        bound_on_n,
    ),
    "a pod waits for an unseen node and turns up elsewhere": (
        lambda w: w.see(N).bind("p", POD, "m").bind("p", POD, "n", devices=(1,)).see(M),
        bound_on_n,
    ),
    "a pod waits for one unseen node and then for another": (
        lambda w: w.see(M).bind("p", POD, "ghost").bind("p", POD, "n", devices=(1,)).see(N),
        bound_on_n,
    ),
    "a pod changes what it asks for while it runs": (
        lambda w: w.see(N, M).bind("p", POD.cpu(3), "n", devices=(1,)).bind("p", POD, "n", devices=(1,)),
        bound_on_n,
    ),
    "a pod goes before it came": (lambda w: w.see(N, M).go("p"), empty),
    "a pod goes twice": (lambda w: w.see(N, M).bind("p", POD, "n").go("p").go("p"), empty),
    "a pod goes while its node is unseen": (lambda w: w.bind("p", POD, "n").go("p").see(N, M), empty),
    "a waiting pod goes": (lambda w: w.see(N, M).arrive("p", POD).go("p"), empty),
    "a node flaps under its pod": (
        lambda w: w.see(N, M).bind("p", POD, "n", devices=(1,)).lose("n").see(N),
        bound_on_n,
    ),
    "a pod goes after its node went": (lambda w: w.see(N, M).bind("p", POD, "n").lose("n").go("p").see(N), empty),
    "a node goes before it came": (lambda w: w.lose("n").see(M, N), empty),
    "a node goes twice": (lambda w: w.see(N, M).lose("n").lose("n").see(N), empty),
    "a node was another machine before": (
        lambda w: w.see(node("n").cpu(9).gpus(8).model("X").taint("t").cordoned().rank(7), M, N),
        empty,
    ),
    "a rejection comes for a pod nobody knows": (lambda w: w.see(N, M).reject("p"), empty),
    "a rejection comes late for a pod that runs": (
        lambda w: w.see(N, M).bind("p", POD, "n", devices=(1,)).reject("p"),
        bound_on_n,
    ),
    "a DaemonSet goes before it came": (lambda w: w.see(N, M).drop_daemon_set("d"), empty),
}


@pytest.mark.parametrize(("story", "plain"), STORIES.values(), ids=STORIES)
def test_an_odd_story_ends_like_the_plain_one(story: Explanation, plain: Callable[[], Scenario]) -> None:
    world = Scenario()
    story(world)
    assert facts_by_name(world.cluster) == facts_by_name(plain().cluster)


def test_a_binding_that_confirms_our_plan_changes_nothing_but_certainty() -> None:
    world = Scenario(N).arrive("p", POD)
    plan = world.round()
    before = facts_by_name(world.cluster)
    world.confirm(plan)
    assert facts_by_name(world.cluster) == before
    world.reject("p")
    assert world.placed() == {"p": "n"}


def test_a_binding_elsewhere_than_planned_is_believed() -> None:
    world = Scenario(N).arrive("p", POD)
    world.round()
    world.see(M).bind("p", POD, "m")
    assert world.placed() == {"p": "m"}
    assert (world.free("n"), world.free("m")) == (4000, 3000)


def test_a_pod_bound_by_somebody_else_while_it_waits_leaves_the_line() -> None:
    world = Scenario(N).arrive("p", POD).bind("p", POD, "n")
    assert world.waiting() == []
    assert world.round().intentions == ()


def test_a_pod_bound_to_an_unseen_node_is_not_placed_again() -> None:
    world = Scenario(N).arrive("p", POD).bind("p", POD, "m").arrive("p", POD)
    assert world.round().placed == []


def test_a_pod_whose_planned_node_went_waits_again_when_the_world_says_no() -> None:
    world = Scenario(N).arrive("p", POD)
    world.round()
    world.lose("n").reject("p").see(M)
    assert [place.node for place in world.round().placed] == ["m"]


def test_every_order_of_the_same_news_ends_in_the_same_facts() -> None:
    """Three nodes and three pods on them: any interleaving a set of watches could deliver."""
    news: list[Explanation] = [
        lambda w: w.see(N),
        lambda w: w.see(M),
        lambda w: w.bind("a", ask().cpu(1).gpus(1), "n", devices=(0,)),
        lambda w: w.bind("b", ask().cpu(2).share(500), "n", devices=(1,)),
        lambda w: w.bind("c", ask().cpu(1), "m", daemon_set="d"),
        lambda w: w.daemon_set("d", ask().cpu(1)),
    ]
    outcomes = []
    for order in itertools.permutations(news):
        world = Scenario()
        for happening in order:
            happening(world)
        outcomes.append(facts_by_name(world.cluster))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert outcomes[0]["nodes"]["n"]["free"]["cpu"] == 0
    assert outcomes[0]["nodes"]["m"]["free"]["cpu"] == 3000


def test_a_pod_that_was_told_to_end_is_still_ending_when_its_devices_are_read_otherwise() -> None:
    world = Scenario(N).bind("p", POD, "n", devices=(1,))
    world.cluster.mark_terminating("p")
    world.apply(PodBound("p", made(POD), "n", positions=((0, 0),), anew=True))
    assert world.devices_of("p") == (0,)
    assert list(world.cluster.terminating) == ["p"]
