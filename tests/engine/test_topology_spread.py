"""How evenly pods are spread: no domain is more than the skew above the emptiest that counts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from build.company import called, selected, spread
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.api.selectors import Selector
from shoal.engine.evidence import evidence
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.pod_rules import SelectedPods, Spread
from shoal.views.why import kube_line

A1, A2, B1, C1 = (node(name).label("host", name).label("zone", name[0]) for name in ("a1", "a2", "b1", "c1"))
BARE = node("bare").label("host", "bare")
WEB, DB = called(app="web"), called(app="db")
NOBODY_MEANT = SelectedPods(Selector.NOTHING, ("default",))


@dataclass(frozen=True)
class Case:
    """Nodes, how many web pods stand on each of some, the constraints, and the nodes that will do."""

    nodes: tuple[NodeBuilder, ...]
    web: dict[str, int]
    rules: tuple[Spread, ...]
    may_use: str
    comes: PodIdentity = WEB
    wanted: AskBuilder = ask()  # noqa: RUF009 - a value


ZONES = (A1, A2, B1, C1)
ONE = spread("zone", app="web")

CASES: dict[str, Case] = {
    "nobody there yet: anywhere": Case(ZONES, {}, (ONE,), "a1 a2 b1 c1"),
    "only the emptier zones": Case(ZONES, {"a1": 1}, (ONE,), "b1 c1"),
    "level again: anywhere": Case(ZONES, {"a1": 1, "b1": 1, "c1": 1}, (ONE,), "a1 a2 b1 c1"),
    "a zone counts all its nodes": Case(ZONES, {"a1": 1, "a2": 1, "b1": 1}, (ONE,), "c1"),
    "more skew, more freedom": Case(ZONES, {"a1": 1}, (spread("zone", skew=2, app="web"),), "a1 a2 b1 c1"),
    "a pod that is not of the kind may come to where they are as even as allowed": Case(
        ZONES, {"a1": 1}, (ONE,), "a1 a2 b1 c1", DB
    ),
    "but not where they are too many already": Case(ZONES, {"a1": 2}, (ONE,), "b1 c1", DB),
    "pods of another namespace do not count": Case(
        ZONES, {"a1": 1}, (spread("zone", selected("x", app="web")),), "all"
    ),
    "a node without the key is no place": Case((*ZONES, BARE), {}, (ONE,), "a1 a2 b1 c1"),
    "too few domains: the emptiest counts as having none": Case(
        (A1, A2, B1), {"a1": 1, "b1": 1}, (spread("zone", least=3, app="web"),), ""
    ),
    "enough domains: the least is what it is": Case(
        ZONES, {"a1": 1, "b1": 1, "c1": 1}, (spread("zone", least=3, app="web"),), "a1 a2 b1 c1"
    ),
    "two constraints must both hold": Case(ZONES, {"a1": 1, "b1": 1, "c1": 1}, (ONE, spread("host", app="web")), "a2"),
    "a node with only one of two keys is left out of both counts": Case(
        (A1, BARE), {"a1": 1}, (ONE, spread("host", app="web")), "a1"
    ),
    "zones ruled out by the selector do not hold the others down": Case(
        ZONES, {"a1": 1, "b1": 1}, (ONE,), "a1 a2 b1", wanted=ask().select("zone", "In", "a", "b")
    ),
    "unless they are to count": Case(
        ZONES,
        {"a1": 1, "b1": 1},
        (spread("zone", honors_affinity=False, app="web"),),
        "",
        wanted=ask().select("zone", "In", "a", "b"),
    ),
    "tainted zones hold the others down": Case((A1, B1, C1.taint("gpu")), {"a1": 1, "b1": 1}, (ONE,), ""),
    "unless taints are honored": Case(
        (A1, B1, C1.taint("gpu")), {"a1": 1, "b1": 1}, (spread("zone", honors_taints=True, app="web"),), "a1 b1"
    ),
    "and tolerated taints count again": Case(
        (A1, B1, C1.taint("gpu")),
        {"a1": 1, "b1": 1},
        (spread("zone", honors_taints=True, app="web"),),
        "c1",
        wanted=ask().tolerate("gpu"),
    ),
    "a selector that means nobody only wants the key": Case(
        (*ZONES, BARE), {"a1": 3}, (spread("zone", NOBODY_MEANT),), "a1 a2 b1 c1"
    ),
}


def world(case: Case) -> Scenario:
    world = Scenario(*case.nodes, policy="BestFit")
    for name, count in case.web.items():
        for index in range(count):
            world.bind(f"{name}-{index}", ask(), name, who=WEB)
    return world


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_where_it_may_go(case: Case) -> None:
    names = {there.name for there in case.nodes} if case.may_use == "all" else set(case.may_use.split())
    assert world(case).possible(case.wanted.near(*case.rules), case.comes) == names


def test_what_is_said_of_the_others() -> None:
    full = world(Case((*ZONES, BARE), {"a1": 1}, (), ""))
    said = kube_line(evidence(full.cluster, ask().near(ONE).made(), WEB))
    assert "2 node(s) didn't match pod topology spread constraints," in said
    assert "1 node(s) didn't match pod topology spread constraints (missing required label)" in said


def test_a_full_node_is_said_to_be_full_and_nothing_else() -> None:
    full = world(Case(ZONES, {"a1": 1}, (), ""))
    said = kube_line(evidence(full.cluster, ask().cpu(1000).near(ONE).made(), WEB))
    assert said == "0/4 nodes are available: 4 Insufficient cpu."


def test_pods_that_are_being_terminated_do_not_count() -> None:
    full = world(Case(ZONES, {"a1": 1}, (), ""))
    wanted = ask().near(ONE)
    assert full.possible(wanted, WEB) == {"b1", "c1"}
    assert full.bind("a1-0", ask(), "a1", who=WEB, terminating=True).possible(wanted, WEB) == {"a1", "a2", "b1", "c1"}
    assert full.go("a1-0").possible(wanted, WEB) == {"a1", "a2", "b1", "c1"}


def test_a_round_spreads_a_deployment() -> None:
    full = Scenario(*ZONES)
    for index in range(7):
        full.arrive(f"p{index}", ask().cpu(1).near(ONE), who=WEB)
    full.round()
    zones = sorted(name[0] for name in full.placed().values())
    assert sorted(map(zones.count, "abc")) == [2, 2, 3]


def test_a_new_zone_takes_all_until_it_has_caught_up() -> None:
    full = world(Case((A1, B1), {"a1": 2, "b1": 2}, (), ""))
    wanted = ask().near(ONE)
    assert full.possible(wanted, WEB) == {"a1", "b1"}
    assert full.see(C1).possible(wanted, WEB) == {"c1"}
    assert full.lose("c1").possible(wanted, WEB) == {"a1", "b1"}
