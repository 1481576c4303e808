"""An object of one version, asked for in the other and back, is the object it was."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.kueue.conversion import V1BETA1, V1BETA2, convert
from shoal.api.kueue.packing import packed, unpacked
from shoal.api.kueue.topology_assignments import TopologyAssignment
from shoal.units.errors import UserError

Plain = dict[str, Any]

names = st.text("ab-1", max_size=4)
unknown = st.dictionaries(st.sampled_from(["later", "other"]), names | st.integers(0, 3), max_size=2)


def object_of(version: str, kind: str, **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Plain]:
    fixed = {"apiVersion": st.just(version), "kind": st.just(kind), "metadata": st.just({"name": "x"})}
    return st.fixed_dictionaries(fixed, optional=dict(parts))


def part(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Plain]:
    """Any of the fields, and some that nobody knows."""
    known = st.fixed_dictionaries({}, optional=dict(fields))
    return st.builds(lambda one, other: {**other, **one}, known, unknown)


def domains(levels: int) -> st.SearchStrategy[list[Plain]]:
    values = st.lists(st.text("ab", max_size=5), min_size=levels, max_size=levels)
    return st.lists(st.fixed_dictionaries({"values": values, "count": st.integers(0, 2)}), max_size=5)


listed = st.integers(1, 3).flatmap(
    lambda levels: st.fixed_dictionaries(
        {"levels": st.just([f"l{n}" for n in range(levels)]), "domains": domains(levels)}
    )
)


def admission(assignments: st.SearchStrategy[Plain]) -> st.SearchStrategy[Plain]:
    one = part(name=names, flavors=st.just({"cpu": "spot"}), topologyAssignment=assignments)
    return part(clusterQueue=names, podSetAssignments=st.lists(one, max_size=2))


FUNGIBILITY = part(
    whenCanBorrow=st.sampled_from(["Borrow", "TryNextFlavor"]),
    whenCanPreempt=st.sampled_from(["Preempt", "TryNextFlavor"]),
)
SOURCES = {
    "kueue.x-k8s.io/workloadpriorityclass": ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}
CLASSES = st.fixed_dictionaries(
    {"priorityClassName": st.sampled_from(["high", "low"]), "priorityClassSource": st.sampled_from(list(SOURCES))}
)
OLD_WORKLOAD_SPECS = st.builds(
    lambda spec, priority: {**spec, **priority}, part(queueName=names), CLASSES | st.just({})
)

# What only v1beta1 has a place for is left out of these: it does not come back.
old = st.one_of(
    object_of(
        V1BETA1,
        "ClusterQueue",
        spec=part(cohort=names, flavorFungibility=FUNGIBILITY, stopPolicy=names),
        status=part(pendingWorkloads=st.integers(0, 9)),
    ),
    object_of(V1BETA1, "LocalQueue", spec=part(clusterQueue=names), status=part(flavorUsage=st.just([{"name": "a"}]))),
    object_of(
        V1BETA1,
        "Workload",
        spec=OLD_WORKLOAD_SPECS,
        status=part(accumulatedPastExexcutionTimeSeconds=st.integers(0, 9), admission=admission(listed)),
    ),
    object_of(V1BETA1, "AdmissionCheck", spec=part(controllerName=names)),
    object_of(V1BETA1, "MultiKueueCluster", spec=part(kubeConfig=st.just({"location": "l"}))),
    object_of(V1BETA1, "ResourceFlavor", spec=part(topologyName=names)),
    object_of(V1BETA1, "Cohort", spec=part(parentName=names)),
    object_of(V1BETA1, "WorkloadPriorityClass", value=st.integers(-3, 3)),
)
NEW_FUNGIBILITY = part(
    whenCanBorrow=st.sampled_from(["MayStopSearch", "TryNextFlavor"]),
    whenCanPreempt=st.sampled_from(["MayStopSearch", "TryNextFlavor"]),
    preference=names,
)
REFERENCES = st.sampled_from([{"group": group, "kind": kind, "name": "high"} for group, kind in SOURCES.values()])
RULES = st.lists(part(name=names, onFlavors=st.lists(names, max_size=2)), max_size=2)
new = st.one_of(
    object_of(
        V1BETA2,
        "ClusterQueue",
        spec=part(
            cohortName=names, flavorFungibility=NEW_FUNGIBILITY, admissionChecksStrategy=part(admissionChecks=RULES)
        ),
    ),
    object_of(V1BETA2, "LocalQueue", status=part(flavorsUsage=st.just([{"name": "a"}]))),
    object_of(
        V1BETA2,
        "Workload",
        spec=part(queueName=names, priorityClassRef=REFERENCES),
        status=part(
            accumulatedPastExecutionTimeSeconds=st.integers(0, 9),
            # Packing is not one to one, but what packing makes is packed again as it was.
            admission=admission(listed.map(packed)),
        ),
    ),
    object_of(V1BETA2, "MultiKueueCluster", spec=part(clusterSource=st.just({"clusterProfileRef": {"name": "p"}}))),
    object_of(V1BETA2, "AdmissionCheck", spec=part(controllerName=names)),
)


@settings(max_examples=examples(80))
@given(old)
def test_old_to_new_and_back_is_the_same(raw: Plain) -> None:
    before = copy.deepcopy(raw)
    upper = convert(raw, V1BETA2)
    assert upper["apiVersion"] == V1BETA2
    assert convert(upper, V1BETA1) == raw
    assert raw == before


@settings(max_examples=examples(80))
@given(new)
def test_new_to_old_and_back_is_the_same(raw: Plain) -> None:
    before = copy.deepcopy(raw)
    lower = convert(raw, V1BETA1)
    assert lower["apiVersion"] == V1BETA1
    assert convert(lower, V1BETA2) == raw
    assert raw == before


@settings(max_examples=examples(80))
@given(listed)
def test_packed_places_are_the_same_places_in_the_same_order(assignment: Plain) -> None:
    value = msgspec.convert(packed(assignment), TopologyAssignment)
    assert [(list(values), count) for values, count in value.domains()] == [
        (one["values"], one["count"]) for one in assignment["domains"]
    ]
    assert unpacked(packed(assignment)) == assignment


slices = st.integers(1, 3).flatmap(
    lambda count: st.fixed_dictionaries(
        {
            "domainCount": st.just(count),
            "valuesPerLevel": st.lists(
                st.one_of(
                    st.fixed_dictionaries({"universal": names}),
                    st.fixed_dictionaries(
                        {
                            "individual": st.fixed_dictionaries(
                                {"roots": st.lists(names, min_size=count, max_size=count)},
                                optional={"prefix": names, "suffix": names},
                            )
                        }
                    ),
                ),
                min_size=2,
                max_size=2,
            ),
            "podCounts": st.one_of(
                st.fixed_dictionaries({"universal": st.integers(0, 3)}),
                st.fixed_dictionaries({"individual": st.lists(st.integers(0, 3), min_size=count, max_size=count)}),
            ),
        }
    )
)


@settings(max_examples=examples(80))
@given(st.lists(slices, max_size=3))
def test_however_it_was_packed_the_places_are_kept(pieces: list[Plain]) -> None:
    assignment = {"levels": ["block", "rack"], "slices": pieces}
    there = msgspec.convert(assignment, TopologyAssignment).domains()
    again = msgspec.convert(packed(unpacked(assignment)), TopologyAssignment)
    assert again.domains() == there


def test_names_that_share_both_ends_are_packed_to_their_middles() -> None:
    nodes = [{"values": ["block-1", f"rack-{n}.example"], "count": 4} for n in (1, 2, 12)]
    assert packed({"levels": ["block", "rack"], "domains": nodes})["slices"] == [
        {
            "domainCount": 3,
            "valuesPerLevel": [
                {"universal": "block-1"},
                {"individual": {"prefix": "rack-", "suffix": ".example", "roots": ["1", "2", "12"]}},
            ],
            "podCounts": {"universal": 4},
        }
    ]


def test_ends_that_would_overlap_are_not_taken_twice() -> None:
    assignment = {"levels": ["l"], "domains": [{"values": [text], "count": 1} for text in ("aa", "aaa")]}
    assert packed(assignment)["slices"][0]["valuesPerLevel"] == [{"individual": {"prefix": "aa", "roots": ["", "a"]}}]


def test_what_the_new_version_has_no_place_for_is_left_out() -> None:
    queue = {"apiVersion": V1BETA1, "kind": "ClusterQueue", "status": {"pendingWorkloadsStatus": {}, "later": 1}}
    assert convert(queue, V1BETA2)["status"] == {"later": 1}
    local = {"apiVersion": V1BETA1, "kind": "LocalQueue", "status": {"flavors": [], "pendingWorkloads": 2}}
    assert convert(local, V1BETA2)["status"] == {"pendingWorkloads": 2}
    check = {"apiVersion": V1BETA1, "kind": "AdmissionCheck", "spec": {"retryDelayMinutes": 5}}
    assert convert(check, V1BETA2)["spec"] == {}


def test_checks_named_in_both_ways_are_all_demanded_once() -> None:
    spec = {
        "admissionChecks": ["a", "b"],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "b", "onFlavors": ["f"]}]},
    }
    queue = {"apiVersion": V1BETA1, "kind": "ClusterQueue", "spec": spec}
    assert convert(queue, V1BETA2)["spec"] == {
        "admissionChecksStrategy": {"admissionChecks": [{"name": "b", "onFlavors": ["f"]}, {"name": "a"}]}
    }


@pytest.mark.parametrize("annotations", [{}, {"annotations": {"a": "b"}}])
@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"]])
def test_checks_that_were_written_by_name_are_shown_by_name_again(names: list[str], annotations: Plain) -> None:
    queue = {
        "apiVersion": V1BETA1,
        "kind": "ClusterQueue",
        "metadata": {"name": "q", **annotations},
        "spec": {"cohort": "x", "admissionChecks": names},
    }
    assert convert(convert(queue, V1BETA2), V1BETA1) == queue


def test_rules_written_later_are_shown_as_rules() -> None:
    queue = {"apiVersion": V1BETA1, "kind": "ClusterQueue", "metadata": {}, "spec": {"admissionChecks": ["a"]}}
    new = convert(queue, V1BETA2)
    rules = {"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b", "onFlavors": ["f"]}]}}
    old = convert({**new, "spec": rules}, V1BETA1)
    assert old["spec"] == rules
    assert "annotations" not in old["metadata"]


def test_may_stop_search_is_an_old_word_too() -> None:
    spec = {"flavorFungibility": {"whenCanBorrow": "MayStopSearch"}}
    queue = {"apiVersion": V1BETA1, "kind": "ClusterQueue", "spec": spec}
    assert convert(queue, V1BETA2)["spec"] == spec


def test_a_version_nobody_has_is_refused() -> None:
    with pytest.raises(UserError, match="no conversion to"):
        convert({"apiVersion": V1BETA1, "kind": "ClusterQueue"}, "kueue.x-k8s.io/v1")
    with pytest.raises(UserError, match="no conversion from"):
        convert({"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "Cohort"}, V1BETA2)


def test_places_that_cannot_be_unpacked_are_refused_with_their_field() -> None:
    piece = {"domainCount": 2, "valuesPerLevel": [{"individual": {"roots": ["a"]}}], "podCounts": {"universal": 1}}
    assignment = {"name": "main", "topologyAssignment": {"levels": ["l"], "slices": [piece]}}
    raw = {
        "apiVersion": V1BETA2,
        "kind": "Workload",
        "status": {"admission": {"podSetAssignments": [assignment]}},
    }
    with pytest.raises(UserError, match=r"one for each of the 2 domains, got 1") as caught:
        convert(raw, V1BETA1)
    assert caught.value.where.path == (
        "status.admission.podSetAssignments[0].topologyAssignment.slices[0].valuesPerLevel[0].individual"
    )


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue", "Workload", "AdmissionCheck", "MultiKueueCluster"])
@pytest.mark.parametrize("odd", [None, [], "text", {"flavorFungibility": 1, "admission": []}])
@pytest.mark.parametrize(("start", "end"), [(V1BETA1, V1BETA2), (V1BETA2, V1BETA1)])
def test_what_has_another_shape_is_left_for_the_reader_to_refuse(kind: str, odd: object, start: str, end: str) -> None:
    raw = {"apiVersion": start, "kind": kind, "spec": odd, "status": odd}
    assert convert(raw, end) == {**raw, "apiVersion": end}


def test_a_class_of_an_unknown_source_is_refused() -> None:
    spec = {"priorityClassName": "high", "priorityClassSource": "elsewhere"}
    with pytest.raises(UserError, match="supported values are") as caught:
        convert({"apiVersion": V1BETA1, "kind": "Workload", "spec": spec}, V1BETA2)
    assert caught.value.where.path == "spec.priorityClassSource"
