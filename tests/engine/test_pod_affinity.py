"""Pods that must be together, must be apart, and pods that keep others away by being there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from build.company import Rule, apart, called, selected, together
from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.api.requirement import Requirement
from shoal.api.selectors import Selector
from shoal.engine.evidence import evidence
from shoal.engine.pod_identity import PodIdentity
from shoal.views.why import kube_line

A1, A2, B1 = (node(name).label("host", name).label("zone", name[0]) for name in ("a1", "a2", "b1"))
BARE = node("bare")
FLEET = (A1, A2, B1, BARE)

WEB, CACHE, DB = called(app="web"), called(app="cache"), called(app="db")
ELSEWHERE = called("other", app="web")
TEAM = Selector((Requirement("team", "Exists"),))


@dataclass(frozen=True)
class Case:
    """Who stands where (with which rules), who comes, and the nodes that will do."""

    there: list[tuple[PodIdentity, str, AskBuilder]]
    comes: PodIdentity
    rules: tuple[Rule, ...]
    may_use: str
    says: str = ""


def there(who: PodIdentity, on: str, *rules: Rule) -> tuple[PodIdentity, str, AskBuilder]:
    return who, on, ask().near(*rules)


NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
KEPT_AWAY = "node(s) didn't satisfy existing pods anti-affinity rules"

CASES: dict[str, Case] = {
    "near to a pod in its zone": Case([there(CACHE, "a1")], WEB, (together("zone", app="cache"),), "a1 a2", NOT_NEAR),
    "near to a pod on its host": Case([there(CACHE, "a1")], WEB, (together("host", app="cache"),), "a1", NOT_NEAR),
    "nobody to be near to": Case([there(DB, "a1")], WEB, (together("zone", app="cache"),), "", NOT_NEAR),
    "the first of a group begins anywhere that has the key": Case([], WEB, (together("zone", app="web"),), "a1 a2 b1"),
    "the second joins the first": Case([there(WEB, "b1")], WEB, (together("zone", app="web"),), "b1"),
    "a first one that is not of the group does not begin": Case([], DB, (together("zone", app="web"),), ""),
    "a member that stands in no domain leaves the beginning open": Case(
        [there(WEB, "bare")], WEB, (together("zone", app="web"),), "a1 a2 b1"
    ),
    "every term must hold": Case(
        [there(called(app="web", tier="x"), "a1")],
        WEB,
        (together("zone", app="web"), together("host", tier="x")),
        "a1",
    ),
    "two terms met by two pods are not met": Case(
        [there(CACHE, "a1"), there(DB, "a1")], WEB, (together("zone", app="cache"), together("zone", app="db")), ""
    ),
    "one of two terms held by one's own kind does not begin a group": Case(
        [], WEB, (together("zone", app="web"), together("zone", app="cache")), ""
    ),
    "apart from a pod by host": Case([there(DB, "a1")], WEB, (apart("host", app="db"),), "a2 b1 bare", NOT_APART),
    "apart from a pod by zone": Case([there(DB, "a1")], WEB, (apart("zone", app="db"),), "b1 bare", NOT_APART),
    "apart from one's own kind": Case(
        [there(WEB, "a1", apart("host", app="web")), there(WEB, "b1", apart("host", app="web"))],
        WEB,
        (apart("host", app="web"),),
        "a2 bare",
        NOT_APART,
    ),
    "one of two to avoid is enough": Case(
        [there(DB, "a1"), there(CACHE, "b1")], WEB, (apart("zone", app="db"), apart("host", app="cache")), "bare"
    ),
    "a pod on a node without the key is not near": Case([there(DB, "bare")], WEB, (apart("zone", app="db"),), "all"),
    "kept away by a pod that is there": Case(
        [there(DB, "a1", apart("zone", app="web"))], WEB, (), "b1 bare", KEPT_AWAY
    ),
    "kept away only if meant": Case([there(DB, "a1", apart("zone", app="web"))], CACHE, (), "all"),
    "kept away by a rule about everybody": Case([there(DB, "a1", apart("host", selected()))], WEB, (), "a2 b1 bare"),
    "a rule means pods of its own namespace": Case([there(ELSEWHERE, "a1")], WEB, (apart("zone", app="web"),), "all"),
    "a rule may name namespaces": Case(
        [there(ELSEWHERE, "a1")], WEB, (apart("zone", selected("other", "third", app="web")),), "b1 bare"
    ),
    "and keeps away only those of its namespaces": Case(
        [there(DB, "a1", apart("zone", selected("other", app="web")))], WEB, (), "all"
    ),
    "namespaces by their labels": Case(
        [there(ELSEWHERE, "a1")], WEB, (apart("zone", selected("none", spaces=TEAM, app="web")),), "b1 bare"
    ),
    "every namespace": Case(
        [there(ELSEWHERE, "a1")],
        WEB,
        (apart("zone", selected("none", spaces=Selector.EVERYTHING, app="web")),),
        "b1 bare",
    ),
    "near and apart together": Case(
        [there(CACHE, "a1"), there(WEB, "a1")],
        WEB,
        (together("zone", app="cache"), apart("host", app="web")),
        "a2",
    ),
}


def world(case: Case, *nodes: NodeBuilder) -> Scenario:
    world = Scenario(*(nodes or FLEET), policy="BestFit").space("other", team="x").space("default")
    for index, (who, on, wanted) in enumerate(case.there):
        world.bind(f"there{index}", wanted, on, who=who)
    return world


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_where_it_may_go(case: Case) -> None:
    names = {there.name for there in FLEET} if case.may_use == "all" else set(case.may_use.split())
    assert world(case).possible(ask().near(*case.rules), case.comes) == names


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.says])
def test_what_is_said_of_the_others(case: Case) -> None:
    full = world(case)
    wanted = ask().near(*case.rules).made()
    left = len(FLEET) - len(case.may_use.split())
    assert f"{left} {case.says}" in kube_line(evidence(full.cluster, wanted, case.comes))


def test_the_rule_goes_with_the_pod() -> None:
    full = world(CASES["kept away by a pod that is there"])
    assert full.go("there0").possible(ask(), WEB) == {"a1", "a2", "b1", "bare"}


def test_a_pod_that_is_being_terminated_still_keeps_others_away() -> None:
    full = Scenario(*FLEET).bind("db", ask().near(apart("zone", app="web")), "a1", who=DB, terminating=True)
    assert full.possible(ask(), WEB) == {"b1", "bare"}


def test_a_node_that_changes_zone_takes_its_pods_along() -> None:
    full = world(CASES["near to a pod in its zone"])
    wanted = ask().near(together("zone", app="cache"))
    assert full.possible(wanted, WEB) == {"a1", "a2"}
    assert full.see(A1.label("zone", "b")).possible(wanted, WEB) == {"a1", "b1"}


def test_a_node_that_goes_takes_its_pods_along_and_brings_them_back() -> None:
    full = world(CASES["near to a pod in its zone"])
    wanted = ask().near(together("zone", app="cache"))
    assert full.lose("a1").possible(wanted, WEB) == set()
    assert full.see(A1).possible(wanted, WEB) == {"a1", "a2"}


def test_a_row_that_another_node_takes_over_belongs_to_its_zone() -> None:
    full = world(CASES["near to a pod in its zone"])
    wanted = ask().near(together("zone", app="cache"))
    assert full.possible(wanted, WEB) == {"a1", "a2"}
    full.lose("a1").see(node("b2").label("zone", "b")).bind("cache", ask(), "b2", who=CACHE)
    assert full.possible(wanted, WEB) == {"b1", "b2"}


def test_a_running_pod_whose_labels_change_is_seen_anew() -> None:
    full = world(CASES["near to a pod in its zone"])
    wanted = ask().near(together("zone", app="cache"))
    assert full.possible(wanted, WEB) == {"a1", "a2"}
    assert full.bind("there0", ask(), "a1", who=DB).possible(wanted, WEB) == set()


def test_a_namespace_that_gets_a_label_is_meant_from_then_on() -> None:
    full = Scenario(*FLEET).bind("far", ask(), "a1", who=ELSEWHERE)
    wanted = ask().near(apart("zone", selected("none", spaces=TEAM, app="web")))
    assert full.possible(wanted, WEB) == {"a1", "a2", "b1", "bare"}
    assert full.space("other", team="x").possible(wanted, WEB) == {"b1", "bare"}


def test_a_selector_by_the_name_of_a_namespace_needs_no_namespace_object() -> None:
    by_name = Selector((Requirement("kubernetes.io/metadata.name", "In", ("other",)),))
    full = Scenario(*FLEET).bind("far", ask(), "a1", who=ELSEWHERE)
    assert full.possible(ask().near(apart("zone", selected("none", spaces=by_name))), WEB) == {"b1", "bare"}
