"""Which flavors a pod set may have at all: taints, labels, topology."""

from __future__ import annotations

import pytest

from build.flavors import choose, only_flavor, pods
from build.queues import cluster_queue, flavor, pod_set, queues, quotas, topology
from shoal.api.node_affinity import NodeSelector, NodeSelectorTerm
from shoal.api.requirement import Requirement
from shoal.api.taints import Taint, Toleration
from shoal.engine.queues.facts import FlavorFacts
from shoal.engine.queues.flavors.modes import Mode
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import SliceLayer, TopologyRequest

SPOT = Taint("instance", "NoSchedule", "spot")
SOFT = Taint("instance", "PreferNoSchedule", "spot")
GONE = Taint("gone", "NoExecute")
TOLERATES = Toleration("instance", "Equal", "spot", "NoSchedule")
RACK = "rack"


def two(*flavors: FlavorFacts, settings: Settings | None = None) -> Queues:
    """A queue with room in each of these flavors, tried in this order."""
    return queues(
        *flavors,
        topology("racks", "block", RACK),
        topology("blocks", "block"),
        cluster_queue("q", *(quotas(each.name, cpu=4) for each in flavors)),
        settings=settings,
    )


def any_of(*terms: tuple[Requirement, ...]) -> NodeSelector:
    return NodeSelector(tuple(NodeSelectorTerm(term) for term in terms))


def is_in(key: str, *values: str) -> Requirement:
    return Requirement(key, "In", values)


@pytest.mark.parametrize(
    ("taint", "flavor_tolerates", "pod_tolerates", "chosen"),
    [
        (SPOT, False, False, "plain"),
        (SPOT, True, False, "tainted"),
        (SPOT, False, True, "tainted"),
        (SOFT, False, False, "tainted"),
        (GONE, False, False, "plain"),
    ],
    ids=["nobody tolerates it", "the flavor does", "the pods do", "soft ones do not count", "NoExecute counts"],
)
def test_a_flavor_whose_taint_nobody_tolerates_is_passed_over(
    taint: Taint, flavor_tolerates: bool, pod_tolerates: bool, chosen: str
) -> None:
    world = two(flavor("tainted", taints=[taint], tolerations=[TOLERATES] if flavor_tolerates else []), flavor("plain"))
    found = choose(world, "q", pod_set(cpu=1, tolerations=[TOLERATES] if pod_tolerates else []))
    assert only_flavor(found) == chosen


ONE, TWO, PLAIN = flavor("one", {"type": "one"}), flavor("two", {"type": "two"}), flavor("plain")
SELECTED: dict[str, tuple[tuple[FlavorFacts, ...], dict[str, str], str | None]] = {
    "the label decides": ((ONE, TWO), {"type": "two"}, "two"),
    "labels that no flavor names say nothing": ((ONE, TWO), {"zone": "far"}, "one"),
    "labels that only another flavor names say nothing": (
        (flavor("big", {"size": "big"}), TWO),
        {"type": "two"},
        "big",
    ),
    "a flavor without labels takes everybody": ((PLAIN, TWO), {"type": "two"}, "plain"),
    "no flavor has it": ((ONE, TWO), {"type": "three"}, None),
    "all labels that a flavor names must agree": (
        (flavor("a", {"type": "two", "size": "big"}), TWO),
        {"type": "two", "size": "small"},
        "two",
    ),
}


@pytest.mark.parametrize(("flavors", "selector", "chosen"), SELECTED.values(), ids=SELECTED)
def test_a_node_selector_is_held_against_the_labels_that_a_flavor_names(
    flavors: tuple[FlavorFacts, ...], selector: dict[str, str], chosen: str | None
) -> None:
    assert only_flavor(choose(two(*flavors), "q", pod_set(cpu=1, selector=selector))) == chosen


AFFINITY: dict[str, tuple[NodeSelector, str | None]] = {
    "one value": (any_of((is_in("type", "two"),)), "two"),
    "several values": (any_of((is_in("type", "two", "one"),)), "one"),
    "terms are alternatives": (any_of((is_in("type", "three"),), (is_in("type", "two"),)), "two"),
    "conditions of a term must all hold": (any_of((is_in("type", "two"), is_in("size", "big"))), "two"),
    "a term about other labels only suits every flavor": (any_of((is_in("type", "two"),), (is_in("x", "y"),)), "one"),
    "absence of a label that the flavor has": (any_of((Requirement("type", "DoesNotExist"),)), None),
    "not that one": (any_of((Requirement("type", "NotIn", ("one",)),)), "two"),
    "no flavor": (any_of((is_in("type", "three"),)), None),
}


@pytest.mark.parametrize(("affinity", "chosen"), AFFINITY.values(), ids=AFFINITY)
def test_required_affinity_is_held_against_the_same_labels(affinity: NodeSelector, chosen: str | None) -> None:
    assert only_flavor(choose(two(ONE, TWO), "q", pod_set(cpu=1, affinity=affinity))) == chosen


def test_selector_and_affinity_must_both_agree() -> None:
    wanted = pod_set(cpu=1, selector={"type": "one"}, affinity=any_of((is_in("type", "two"),)))
    assert choose(two(ONE, TWO), "q", wanted).why is Wait.NO_FLAVOR


def test_a_flavor_that_is_not_there_is_passed_over() -> None:
    world = two(ONE, TWO)
    world.drop(FlavorFacts, "one")
    found = choose(world, "q", pods(cpu=1))
    assert only_flavor(found) == "two"


def test_a_flavor_that_is_ruled_out_is_passed_over() -> None:
    assert only_flavor(choose(two(ONE, TWO), "q", pods(cpu=1), barred=frozenset({"one"}))) == "two"


TREE, FLAT = flavor("tree", {"type": "gpu"}, topology="racks"), flavor("flat", {"type": "gpu"}, topology="blocks")
TOPOLOGY: dict[str, tuple[tuple[FlavorFacts, ...], TopologyRequest | None, str | None]] = {
    "who asks needs a flavor that has one": ((PLAIN, TREE), TopologyRequest(required=RACK), "tree"),
    "preferred is asking": ((PLAIN, TREE), TopologyRequest(preferred=RACK), "tree"),
    "unconstrained is asking": ((PLAIN, TREE), TopologyRequest(unconstrained=True), "tree"),
    "slices are asking": ((PLAIN, TREE), TopologyRequest(slice_level=RACK, slice_size=2), "tree"),
    "who does not ask stays out": ((TREE, PLAIN), None, "plain"),
    "a group alone is not asking": ((TREE, PLAIN), TopologyRequest(group="g"), "plain"),
    "who does not ask is taken where there is nothing else": ((TREE, FLAT), None, "tree"),
    "the level must be there": ((FLAT, TREE), TopologyRequest(required=RACK), "tree"),
    "the level of the slices too": (
        (FLAT, TREE),
        TopologyRequest(required="block", slice_level=RACK, slice_size=2),
        "tree",
    ),
    "and of every layer": (
        (FLAT, TREE),
        TopologyRequest(preferred="block", layers=(SliceLayer("block", 4), SliceLayer(RACK, 2))),
        "tree",
    ),
    "unconstrained needs no level": ((FLAT, TREE), TopologyRequest(unconstrained=True), "flat"),
    "no flavor has the level": ((FLAT, PLAIN), TopologyRequest(required=RACK), None),
}


@pytest.mark.parametrize(("flavors", "request_", "chosen"), TOPOLOGY.values(), ids=TOPOLOGY)
def test_topology_separates_both_ways(
    flavors: tuple[FlavorFacts, ...], request_: TopologyRequest | None, chosen: str | None
) -> None:
    assert only_flavor(choose(two(*flavors), "q", pod_set(cpu=1, topology=request_))) == chosen


def test_without_the_gate_topology_separates_nobody() -> None:
    world = two(PLAIN, TREE, settings=Settings(gates=frozenset()))
    assert only_flavor(choose(world, "q", pod_set(cpu=1, topology=TopologyRequest(required=RACK)))) == "plain"


def test_every_flavor_that_is_passed_over_is_named_with_its_reason() -> None:
    found = choose(two(flavor("tainted", taints=[SPOT]), TWO), "q", pod_set(cpu=1, selector={"type": "one"}))
    assert (found.mode, found.why) == (Mode.NO_FIT, Wait.NO_FLAVOR)
    assert found.message == (
        "couldn't assign flavors to pod set main: flavor two doesn't match node affinity, "
        "untolerated taint instance=spot:NoSchedule in flavor tainted"
    )
