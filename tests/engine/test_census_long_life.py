"""Deployments with rules of their own come and go for years: counts stay few and stay right."""

from __future__ import annotations

from build.company import apart, called, spread
from build.nodes import node
from build.pods import ask
from build.scenario import Scenario

A, B = (node(name).label("host", name).label("zone", "z") for name in "ab")
MANY = 4200


def test_rules_that_no_pod_has_any_more_are_forgotten_and_the_others_still_hold() -> None:
    world = Scenario(A, B).bind("stays", ask().near(apart("host", app="web")), "a", who=called(app="web"))
    for index in range(MANY):
        name = f"app-{index}"
        world.bind(name, ask().near(apart("zone", app=name)), "b", who=called(app=name)).go(name)
    counts = world.cluster.counts
    assert len(counts._carried) < MANY // 2
    assert sum(len(zones.domain_counts) for zones in counts._zones.values()) < MANY // 2
    assert world.possible(ask(), called(app="web")) == {"b"}
    assert world.possible(ask(), called(app=f"app-{MANY - 1}")) == {"a", "b"}
    assert world.go("stays").possible(ask(), called(app="web")) == {"a", "b"}


def test_rules_that_no_newcomer_can_feel_are_not_kept() -> None:
    world = Scenario(A, B)
    for index in range(MANY):
        name = f"app-{index}"
        world.bind(name, ask().near(spread("zone", app=name)), "b", who=called(app=name)).go(name)
    assert len(world.cluster.counts._carried) < MANY // 2


def test_counts_that_were_dropped_are_made_again() -> None:
    world = Scenario(A, B).bind("web", ask(), "a", who=called(app="web"))
    wanted = ask().near(apart("host", app="web"))
    assert world.possible(wanted, called()) == {"b"}
    for index in range(MANY):
        world.placement.domains.verdict(ask().near(apart("host", app=f"app-{index}")).made(), called())
    assert len(world.cluster.counts._means) < MANY
    assert world.possible(wanted, called()) == {"b"}
    assert world.go("web").possible(wanted, called()) == {"a", "b"}
