"""Preferences about other pods weigh on a fixed scale, and never keep anybody out."""

from __future__ import annotations

import numpy as np
import pytest

from build.company import Rule, apart, called, spread, together, wished
from build.nodes import node
from build.pods import ask
from build.scenario import Scenario
from shoal.engine.cluster import RANK_BITS, Cluster
from shoal.engine.domains.soft import NO_SOFT, Soft, points_of, spread_weight
from shoal.engine.domains.verdict import Domains
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.profile import Profile

A1, A2, B1 = (node(name).label("host", name).label("zone", name[0]) for name in ("a1", "a2", "b1"))
BARE = node("bare")
WEB, CACHE = called(app="web"), called(app="cache")
BOTH = Soft(affinity=1, spread=1)


def points(world: Scenario, who: PodIdentity, *rules: Rule, soft: Soft = BOTH) -> dict[str, int]:
    """Points by node; nothing when no preference is felt."""
    cluster = world.cluster
    wanted = ask().near(*rules).made()
    cluster.charge(wanted)
    verdict = Domains(cluster, soft).verdict(wanted, who)
    if verdict is None or verdict.extra is None:
        return {}
    return {name: int(verdict.extra[row]) >> RANK_BITS for name, row in cluster.row_of.items()}


@pytest.mark.parametrize(
    ("distance", "left"), [(0, 100), (1, 92), (3, 84), (100, 47), (5790, 1), (5792, 0), (1_000_000, 0)]
)
def test_the_curve(distance: int, left: int) -> None:
    assert points_of(np.array([distance]))[0] == left


def test_a_wish_for_company() -> None:
    world = Scenario(A1, A2, B1, BARE).bind("c", ask(), "a1", who=CACHE)
    assert points(world, WEB, wished(100, "zone", app="cache")) == {"a1": 100, "a2": 100, "b1": 47, "bare": 47}


def test_a_wish_to_keep_away() -> None:
    world = Scenario(A1, A2, B1, BARE).bind("c", ask(), "a1", who=CACHE)
    assert points(world, WEB, wished(-3, "host", app="cache")) == {"a1": 84, "a2": 100, "b1": 100, "bare": 100}


def test_wishes_add_up_over_pods_and_terms() -> None:
    world = Scenario(A1, A2, B1, BARE).bind("c", ask(), "a1", who=CACHE).bind("d", ask(), "a2", who=CACHE)
    rules = wished(3, "zone", app="cache"), wished(-6, "host", app="cache")
    assert points(world, WEB, *rules) == {"a1": 100, "a2": 100, "b1": 100, "bare": 100}
    world.bind("e", ask(), "b1", who=CACHE)
    assert points(world, WEB, *rules) == {"a1": 100, "a2": 100, "b1": 84, "bare": 100}


def test_those_who_are_there_have_wishes_too() -> None:
    world = Scenario(A1, A2, B1).bind("c", ask().near(wished(1, "zone", app="web")), "a1", who=CACHE)
    world.bind("d", ask().near(wished(-3, "host", app="web")), "b1", who=CACHE)
    assert points(world, WEB) == {"a1": 100, "a2": 100, "b1": points_of(np.array([4]))[0]}
    assert points(world, CACHE) == {}


def test_what_others_must_have_pulls_a_little() -> None:
    world = Scenario(A1, B1).bind("c", ask().near(together("zone", app="web")), "a1", who=CACHE)
    assert points(world, WEB) == {"a1": 100, "b1": 92}
    assert points(world, WEB, soft=Soft(affinity=1, required_too=3)) == {"a1": 100, "b1": 84}
    assert points(world, WEB, soft=Soft(affinity=1, required_too=0)) == {}


def test_wishes_of_others_can_be_left_aside() -> None:
    world = Scenario(A1, B1).bind("c", ask().near(wished(1, "zone", app="web")), "a1", who=CACHE)
    deaf = Soft(affinity=1, others_too=False)
    assert points(world, WEB, soft=deaf) == {}
    assert points(world, WEB, wished(1, "zone", app="db"), soft=deaf) == {"a1": 100, "b1": 92}


def test_a_soft_spread_prefers_the_emptier_domain() -> None:
    world = Scenario(A1, A2, B1, BARE).bind("c", ask(), "a1", who=WEB)
    rule = spread("zone", hard=False, app="web")
    assert points(world, WEB, rule) == {"a1": 92, "a2": 92, "b1": 100, "bare": 0}
    assert world.possible(ask().near(rule), WEB) == {"a1", "a2", "b1", "bare"}


def test_two_soft_spreads_weigh_by_their_number_of_domains() -> None:
    world = Scenario(A1, A2, B1).bind("c", ask(), "a1", who=WEB)
    rules = spread("zone", hard=False, app="web"), spread("host", hard=False, app="web")
    zones, hosts = spread_weight(2), spread_weight(3)
    got = points(world, WEB, *rules)
    assert got == {"a1": points_of(np.array([(zones + hosts) // zones]))[0], "a2": 92, "b1": 100}


def test_a_profile_without_such_weights_feels_nothing() -> None:
    world = Scenario(A1, B1).bind("c", ask(), "a1", who=CACHE)
    assert points(world, WEB, wished(100, "zone", app="cache"), soft=NO_SOFT) == {}


def test_shoals_own_policy_follows_wishes_before_it_packs() -> None:
    world = Scenario(A1, A2.cpu(4), B1.cpu(2)).bind("c", ask(), "a1", who=CACHE)
    charge = world.cluster.charge(ask().cpu(1).near(wished(1, "host", app="cache")).made())
    world.placement.renew()
    chosen = world.placement.choose(charge, 0, WEB)
    assert chosen is not None
    assert world.cluster.names[chosen[0]] == "a1"


def by_chance(cluster: Cluster) -> Profile:
    return Profile("chance", at_random=True)


def test_chance_obeys_the_rules_too() -> None:
    world = Scenario(A1, A2, B1, policy=by_chance).bind("c", ask(), "a1", who=CACHE)
    charge = world.cluster.charge(ask().near(apart("zone", app="cache")).made())
    seen = {world.placement.choose(charge, draw, NO_IDENTITY) for draw in range(20)}
    assert {world.cluster.names[chosen[0]] for chosen in seen if chosen} == {"b1"}
