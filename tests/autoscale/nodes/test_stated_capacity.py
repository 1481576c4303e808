"""The capacity type that a workload or its PriorityClass states decides which nodes are planned for it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from build.pool_worlds import machine, pod, pool, world
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod
from shoal.api.stated_capacity import (
    FALLBACK,
    StatedCapacity,
    on_stated_capacity,
    stated_capacity,
    with_stated_capacity,
)
from shoal.autoscale.nodes.instance_types import Offering
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL as KEY

_BOTH = replace(machine("m", 8, price=8), offerings=(Offering("a", "on-demand", 8.0), Offering("a", "spot", 3.0)))
_SPOT_ONLY = replace(machine("m", 8, price=8), offerings=(Offering("a", "spot", 3.0),))


def _planned(given: Pod, kind: Any = _BOTH, classes: dict[str, StatedCapacity] | None = None) -> list[str]:
    plan = plan_nodes(world((kind,), [with_stated_capacity(given, classes or {})], pools=[pool()]))
    return [node.offering.capacity_type for node in plan.new_nodes]


@pytest.mark.parametrize("field", ["annotations", "labels"])
def test_a_pod_gets_the_capacity_type_that_it_states(field: str) -> None:
    stated: dict[str, Any] = {field: {KEY: "on-demand"}}
    assert _planned(pod("p", "1")) == ["spot"]
    assert _planned(pod("p", "1", **stated)) == ["on-demand"]


def test_no_node_is_planned_where_the_stated_type_is_not_offered() -> None:
    assert _planned(pod("p", "1", annotations={KEY: "on-demand"}), _SPOT_ONLY) == []


def test_with_a_fallback_another_type_is_planned() -> None:
    notes = {KEY: "on-demand", FALLBACK: "true"}
    assert _planned(pod("p", "1", annotations=notes)) == ["on-demand"]
    assert _planned(pod("p", "1", annotations=notes), _SPOT_ONLY) == ["spot"]


def test_a_priority_class_states_it_for_its_pods_and_the_pod_goes_first() -> None:
    stated = stated_capacity(ObjectMeta(name="production", labels={KEY: "on-demand"}))
    assert stated is not None
    classes = {"production": stated}
    own = pod("p", "1", annotations={KEY: "spot"})

    for given, expected in ((pod("p", "1"), "on-demand"), (own, "spot")):
        classed = replace(given, spec=replace(given.spec, priority_class_name="production"))
        assert _planned(classed, classes=classes) == [expected]


def test_a_node_selector_of_the_pod_replaces_it() -> None:
    given = pod("p", "1", annotations={KEY: "on-demand"})
    selecting = replace(given, spec=replace(given.spec, node_selector={KEY: "spot"}))
    assert _planned(selecting) == ["spot"]


def test_several_types_are_separated_by_commas() -> None:
    assert stated_capacity(ObjectMeta(name="x", annotations={KEY: "reserved, on-demand"})) == StatedCapacity(
        ("on-demand", "reserved")
    )


_EKS, _GKE, _AKS = (
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",
    "kubernetes.azure.com/scalesetpriority",
)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ({KEY: "spot"}, "spot"),
        ({KEY: "on-demand", _EKS: "SPOT"}, "on-demand"),
        ({KEY: "reserved"}, "reserved"),
        ({_EKS: "SPOT"}, "spot"),
        ({_EKS: "ON_DEMAND"}, "on-demand"),
        ({_EKS: "CAPACITY_BLOCK"}, "reserved"),
        ({_GKE: "true"}, "spot"),
        ({_AKS: "spot"}, "spot"),
        ({_AKS: "regular"}, "on-demand"),
        ({}, "on-demand"),
    ],
)
def test_the_scheduler_reads_the_capacity_type_of_a_node_from_the_label_of_its_cloud(
    labels: dict[str, str], kind: str
) -> None:
    for stated in ("spot", "on-demand", "reserved", "spot,reserved"):
        rule = on_stated_capacity(pod("p", "1", annotations={KEY: stated}), {}).spec.node_rule()
        assert rule.matches("n", labels) == (kind in stated.split(",")), stated


def test_the_affinity_of_the_pod_holds_beside_it_and_a_term_without_conditions_matches_nothing() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    for terms, matches in (([zone], True), ([{}], False), ([{}, zone], True)):
        required: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        given = pod("p", "1", annotations={KEY: "spot"}, affinity={"nodeAffinity": required})
        rule = on_stated_capacity(given, {}).spec.node_rule()
        assert rule.matches("n", {"zone": "a", KEY: "spot"}) is matches
        assert not rule.matches("n", {"zone": "a", KEY: "on-demand"})
        assert not rule.matches("n", {"zone": "b", KEY: "spot"})
