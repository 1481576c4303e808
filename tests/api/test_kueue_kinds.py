"""Kueue's kinds come out as one value each, whichever version they were written in and whichever way they are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.api import kueue
from shoal.api.decode import read
from shoal.api.groups import kubernetes
from shoal.api.wire import to_json
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

OLD, NEW = "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"

TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
GROUPS = [
    {
        "coveredResources": ["cpu", "nvidia.com/gpu"],
        "flavors": [
            {
                "name": "spot",
                "resources": [
                    {"name": "cpu", "nominalQuota": 8, "borrowingLimit": "2500m"},
                    {"name": "nvidia.com/gpu", "nominalQuota": "4", "lendingLimit": "1"},
                ],
            }
        ],
    }
]


def document(version: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **rest}


def only(raw: dict[str, Any]) -> Any:
    (found,) = read(json.dumps(raw), "x.json")
    return found.value


def test_a_cluster_queue_of_either_version_is_one_value() -> None:
    new = document(
        NEW,
        "ClusterQueue",
        spec={
            "cohortName": "all",
            "resourceGroups": GROUPS,
            "namespaceSelector": {},
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
            "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b"}]},
            "fairSharing": {"weight": "2"},
        },
    )
    old = document(
        OLD,
        "ClusterQueue",
        spec={
            "cohort": "all",
            "resourceGroups": GROUPS,
            "namespaceSelector": {},
            "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
            "admissionChecks": ["a", "b"],
            "fairSharing": {"weight": 2},
        },
    )
    queue = only(new)
    assert isinstance(queue, kueue.ClusterQueue)
    assert only(old) == queue
    assert queue.metadata.namespace == ""
    (flavor,) = queue.spec.resource_groups[0].flavors
    assert flavor.resources[0].borrowing_limit == Quantity.parse("2.5")
    assert flavor.resources[1].lending_limit == Quantity.of(1)
    assert queue.spec.flavor_fungibility.when_can_preempt == "MayStopSearch"
    assert [rule.name for rule in queue.spec.admission_checks_strategy.admission_checks] == ["a", "b"]


def test_what_a_cluster_queue_leaves_out_is_as_kueue_has_it() -> None:
    spec = only(document(NEW, "ClusterQueue", spec={})).spec
    assert spec.namespace_selector is None
    assert (spec.queueing_strategy, spec.stop_policy) == ("BestEffortFIFO", "None")
    assert spec.preemption.within_cluster_queue == spec.preemption.reclaim_within_cohort == "Never"
    assert (spec.flavor_fungibility.when_can_borrow, spec.flavor_fungibility.when_can_preempt) == (
        "MayStopSearch",
        "TryNextFlavor",
    )
    assert spec.fair_sharing.weight == Quantity.of(1)
    assert not spec.has_usage_based_admission()


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2"])
def test_a_cohort_knows_its_parent_in_every_version(version: str) -> None:
    name = "parent" if version == "v1alpha1" else "parentName"
    cohort = only(document(f"kueue.x-k8s.io/{version}", "Cohort", spec={name: "root", "resourceGroups": GROUPS}))
    assert isinstance(cohort, kueue.Cohort)
    assert cohort.spec.parent_name == "root"


def test_a_local_queue_lives_in_a_namespace_and_tells_what_was_consumed() -> None:
    sharing = {"admissionFairSharingStatus": {"consumedResources": {"cpu": "3"}, "lastUpdate": "2026-01-01T00:00:00Z"}}
    queue = only(
        document(OLD, "LocalQueue", spec={"clusterQueue": "cq"}, status={"flavorUsage": [], "fairSharing": sharing})
    )
    assert isinstance(queue, kueue.LocalQueue)
    assert queue.metadata.key == "default/x"
    assert queue.status.fair_sharing is not None
    assert queue.status.fair_sharing.admission_fair_sharing_status is not None
    assert queue.status.fair_sharing.admission_fair_sharing_status.consumed_resources == {"cpu": Quantity.of(3)}


def test_flavors_checks_and_priority_classes_are_read() -> None:
    flavor = only(document(NEW, "ResourceFlavor", spec={"nodeLabels": {"pool": "a"}, "topologyName": "racks"}))
    assert isinstance(flavor, kueue.ResourceFlavor)
    assert flavor.spec.topology_name == "racks"
    status = {"conditions": [{"type": "Active", "status": "True"}]}
    check = only(document(OLD, "AdmissionCheck", spec={"controllerName": "c", "retryDelayMinutes": 5}, status=status))
    assert isinstance(check, kueue.AdmissionCheck)
    assert check.is_active()
    assert not only(document(NEW, "AdmissionCheck", spec={"controllerName": "c"})).is_active()
    priority = only(document(OLD, "WorkloadPriorityClass", value=-5))
    assert isinstance(priority, kueue.WorkloadPriorityClass)
    assert priority.value == -5


def old_workload() -> dict[str, Any]:
    domains = [{"values": ["b1", f"r{index}"], "count": 2} for index in range(3)]
    return document(
        OLD,
        "Workload",
        spec={
            "podSets": [{"name": "main", "count": 6, "template": TEMPLATE}],
            "queueName": "lq",
            "priority": 7,
            "priorityClassName": "high",
            "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
        },
        status={
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [
                    {
                        "name": "main",
                        "count": 6,
                        "flavors": {"cpu": "spot"},
                        "resourceUsage": {"cpu": "6"},
                        "topologyAssignment": {"levels": ["block", "rack"], "domains": domains},
                    }
                ],
            },
            "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}],
            "accumulatedPastExexcutionTimeSeconds": 12,
        },
    )


def test_an_old_workload_is_read_with_its_class_its_past_and_its_places() -> None:
    workload = only(old_workload())
    assert isinstance(workload, kueue.Workload)
    assert workload.metadata.key == "default/x"
    reference = workload.spec.priority_class_ref
    assert reference is not None
    assert (reference.group, reference.kind, reference.name) == ("kueue.x-k8s.io", "WorkloadPriorityClass", "high")
    assert workload.status.accumulated_past_execution_time_seconds == 12
    assert workload.status.is_true("QuotaReserved")
    assert not workload.status.is_true("Admitted")
    assert workload.status.admission is not None
    assignment = workload.status.admission.pod_set_assignments[0].topology_assignment
    assert assignment is not None
    assert len(assignment.slices) == 1
    assert assignment.domains() == ((("b1", "r0"), 2), (("b1", "r1"), 2), (("b1", "r2"), 2))


def test_packed_places_are_unpacked_slice_by_slice() -> None:
    raw = old_workload()
    raw["apiVersion"] = NEW
    raw["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = {
        "levels": ["kubernetes.io/hostname"],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [{"individual": {"prefix": "n-", "suffix": ".x", "roots": ["1", "2"]}}],
                "podCounts": {"individual": [1, 3]},
            },
            {"domainCount": 1, "valuesPerLevel": [{"universal": "m"}], "podCounts": {"universal": 2}},
        ],
    }
    assignment = only(raw).status.admission.pod_set_assignments[0].topology_assignment
    assert assignment.domains() == ((("n-1.x",), 1), (("n-2.x",), 3), (("m",), 2))


def test_a_class_without_a_source_is_one_of_pods() -> None:
    raw = old_workload()
    del raw["spec"]["priorityClassSource"]
    assert only(raw).spec.priority_class_ref.kind == "PriorityClass"


def test_the_workload_of_kubernetes_is_another_type_and_may_have_the_same_name() -> None:
    other = document(
        "scheduling.k8s.io/v1alpha1", "Workload", spec={"podGroups": [{"name": "g", "policy": {"basic": {}}}]}
    )
    documents = read(f"{json.dumps(old_workload())}\n---\n{json.dumps(other)}", "two.yaml")
    assert [type(one.value) for one in documents] == [kueue.Workload, kubernetes.Workload]


def test_one_queue_in_two_versions_is_one_queue_given_twice() -> None:
    both = [document(version, "ClusterQueue", spec={}) for version in (OLD, NEW)]
    with pytest.raises(UserError, match="is given twice"):
        read("\n---\n".join(json.dumps(one) for one in both), "two.yaml")


@pytest.mark.parametrize("raw", [old_workload(), document(OLD, "ClusterQueue", spec={"cohort": "c"})])
def test_what_is_written_is_written_as_the_new_version_and_read_back_equal(raw: dict[str, Any]) -> None:
    value = only(raw)
    again = {**json.loads(to_json(value)), "apiVersion": NEW, "kind": raw["kind"]}
    assert only(again) == value


def test_an_old_document_that_is_wrong_names_the_field_that_is_wrong() -> None:
    raw = old_workload()
    raw["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]["domains"][1]["count"] = "two"
    with pytest.raises(UserError) as caught:
        only(raw)
    text = str(caught.value)
    assert "Workload default/x" in text
    assert "podSetAssignments[0].topologyAssignment.domains[1].count" in text


def test_a_list_of_old_queues_is_read_item_by_item() -> None:
    items = [{"metadata": {"name": name}, "spec": {"cohort": "c"}} for name in ("a", "b")]
    found = read(json.dumps({"apiVersion": OLD, "kind": "ClusterQueueList", "items": items}))
    assert [one.value.spec.cohort_name for one in found] == ["c", "c"]  # type: ignore[union-attr]
