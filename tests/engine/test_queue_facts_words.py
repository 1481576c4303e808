"""Queues, topology wishes and settings as they are written, and the facts that they come to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.kueue import ClusterQueue, Cohort, Configuration, LocalQueue
from shoal.api.kueue.topology_requests import PodSetTopologyRequest
from shoal.api.selectors import Selector
from shoal.api.wire import dec_hook
from shoal.engine.from_api.queues import (
    cluster_queue_facts_of,
    cohort_facts_of,
    local_queue_facts_of,
    settings_of,
)
from shoal.engine.from_api.queues.topology_requests import topology_of_annotations, topology_of_request
from shoal.engine.queues.admission_checks import AdmissionCheckRule
from shoal.engine.queues.facts import FlavorQuotas, Fungibility, PreemptionRules, Quota, ResourceGroup
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.topology_facts import SliceLayer, TopologyRequest
from shoal.units.errors import UserError, Where

PREFIX = "kueue.x-k8s.io/podset-"


def read(raw: dict[str, Any], wanted: type[Any]) -> Any:
    return msgspec.convert({"metadata": {"name": "x", "namespace": "t"}, **raw}, wanted, dec_hook=dec_hook)


# -- queues --------------------------------------------------------------------------------------------------


def test_a_cluster_queue_says_nothing_and_gets_kueues_defaults() -> None:
    facts = cluster_queue_facts_of(read({}, ClusterQueue))
    assert (facts.strategy, facts.stop, facts.weight, facts.by_usage) == ("BestEffortFIFO", "None", 1.0, False)
    assert (facts.fungibility, facts.preemption) == (Fungibility(), PreemptionRules())
    assert facts.namespaces == Selector.NOTHING, "absent is nobody"
    assert cluster_queue_facts_of(read({"spec": {"namespaceSelector": {}}}, ClusterQueue)).namespaces == Selector()


def test_a_cluster_queue_says_everything() -> None:
    quota = {"name": "cpu", "nominalQuota": "1500m", "borrowingLimit": 2, "lendingLimit": "0"}
    memory = {"name": "memory", "nominalQuota": "1Gi"}
    spec = {
        "cohortName": "all",
        "queueingStrategy": "StrictFIFO",
        "resourceGroups": [
            {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "f", "resources": [quota, memory]}]}
        ],
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch"},
        "preemption": {
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 7},
        },
        "admissionChecksStrategy": {"admissionChecks": [{"name": "a", "onFlavors": ["f"]}, {"name": "b"}]},
        "stopPolicy": "HoldAndDrain",
        "fairSharing": {"weight": "500m"},
        "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
    }
    facts = cluster_queue_facts_of(read({"spec": spec}, ClusterQueue))
    amounts = {"cpu": Quota(1500, 2000, 0), "memory": Quota(2**30)}
    assert facts.groups == (ResourceGroup(("cpu", "memory"), (FlavorQuotas("f", amounts),)),)
    assert facts.fungibility == Fungibility("TryNextFlavor", "MayStopSearch")
    assert facts.preemption == PreemptionRules("LowerPriority", "Any", "LowerPriority", 7)
    assert facts.checks == (AdmissionCheckRule("a", ("f",)), AdmissionCheckRule("b"))
    assert (facts.cohort, facts.strategy, facts.stop) == ("all", "StrictFIFO", "HoldAndDrain")
    assert (facts.weight, facts.by_usage) == (0.5, True)


def test_a_queue_that_is_being_deleted_admits_nobody_more() -> None:
    terminating = {"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert cluster_queue_facts_of(read(terminating, ClusterQueue)).stop == "Hold"
    drained = {**terminating, "spec": {"stopPolicy": "HoldAndDrain"}}
    assert cluster_queue_facts_of(read(drained, ClusterQueue)).stop == "HoldAndDrain"


def test_a_cohort_has_a_parent_and_a_weight() -> None:
    facts = cohort_facts_of(read({"spec": {"parentName": "root", "fairSharing": {"weight": 0}}}, Cohort))
    assert (facts.parent, facts.weight) == ("root", 0.0)


def test_what_a_local_queue_used_is_weighted_in_cores_and_units() -> None:
    used = {"admissionFairSharingStatus": {"consumedResources": {"cpu": "1500m", "gpu": "2", "idle": "9"}}}
    raw = {"spec": {"clusterQueue": "cq"}, "status": {"fairSharing": used}}
    facts = local_queue_facts_of(read(raw, LocalQueue), {"gpu": 10.0, "idle": 0.0})
    assert (facts.key, facts.cluster_queue, facts.used) == ("t/x", "cq", 21.5)
    assert local_queue_facts_of(read({}, LocalQueue), {}).used is None


# -- topology ------------------------------------------------------------------------------------------------

WISHES: dict[str, tuple[dict[str, str], TopologyRequest | None]] = {
    "nothing": ({}, None),
    "required": ({"required-topology": "rack"}, TopologyRequest(required="rack")),
    "preferred": ({"preferred-topology": "rack"}, TopologyRequest(preferred="rack")),
    "anywhere": ({"unconstrained-topology": "true"}, TopologyRequest(unconstrained=True)),
    "not anywhere": ({"unconstrained-topology": "false"}, None),
    "with another pod set": (
        {"required-topology": "rack", "group-name": "g"},
        TopologyRequest(required="rack", group="g"),
    ),
    "in slices": (
        {"slice-required-topology": "host", "slice-size": "4"},
        TopologyRequest(slice_level="host", slice_size=4),
    ),
    "in slices within slices": (
        {"slice-required-topology-constraints": '[{"topology":"rack","size":8},{"topology":"host","size":2}]'},
        TopologyRequest(slice_level="rack", slice_size=8, layers=(SliceLayer("rack", 8), SliceLayer("host", 2))),
    ),
}


@pytest.mark.parametrize(("written", "requirement"), WISHES.values(), ids=WISHES)
def test_pods_want_to_be(written: dict[str, str], requirement: TopologyRequest | None) -> None:
    annotations = {PREFIX + key: text for key, text in written.items()}
    assert topology_of_annotations(annotations, Where()) == requirement


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "two levels": ({"required-topology": "a", "preferred-topology": "b"}, "preferred-topology.*contradicts"),
    "a level and anywhere": ({"required-topology": "a", "unconstrained-topology": "true"}, "contradicts"),
    "a size without a level": ({"slice-size": "2"}, "needs .*slice-required-topology beside it"),
    "a level without a size": ({"slice-required-topology": "a"}, "needs .*slice-size beside it"),
    "a size that is no number": ({"slice-required-topology": "a", "slice-size": "two"}, "slice-size.*whole number"),
    "layers that are no list": ({"slice-required-topology-constraints": "rack"}, "constraints.*not a list"),
}


@pytest.mark.parametrize(("written", "words"), WRONG.values(), ids=WRONG)
def test_wishes_that_contradict_themselves_are_told_by_their_field(written: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        topology_of_annotations({PREFIX + key: text for key, text in written.items()}, Where(path="annotations"))


def test_a_request_for_nothing_is_none() -> None:
    assert topology_of_request(None) is None
    assert topology_of_request(PodSetTopologyRequest(pod_index_label="i")) is None
    sliced = PodSetTopologyRequest(preferred="a", pod_set_slice_required_topology="b", pod_set_slice_size=2)
    assert topology_of_request(sliced) == TopologyRequest(preferred="a", slice_level="b", slice_size=2)


# -- settings ------------------------------------------------------------------------------------------------


def settings(**fields: Any) -> Settings:
    found: Settings = settings_of(read(fields, Configuration), Where())
    return found


def test_a_configuration_that_says_nothing_waits_for_pods_and_is_plain_otherwise() -> None:
    found = settings()
    assert found.wait_for_pods_ready
    plain = Settings(wait_for_pods_ready=True, ready_timeout_s=1800.0, recovery_timeout_s=1800.0)
    assert found == plain


def test_a_configuration_that_says_everything() -> None:
    found = settings(
        waitForPodsReady={
            "timeout": "5m",
            "recoveryTimeout": "90s",
            "blockAdmission": True,
            "requeuingStrategy": {
                "timestamp": "Creation",
                "backoffLimitCount": 3,
                "backoffBaseSeconds": 10,
                "backoffMaxSeconds": 100,
            },
        },
        fairSharing={"preemptionStrategies": ["LessThanInitialShare"]},
        admissionFairSharing={
            "usageHalfLifeTime": "1h",
            "usageSamplingInterval": "1m",
            "resourceWeights": {"cpu": 0.5},
        },
        resources={"quotaCheckStrategy": "IgnoreUndeclared"},
        shoal={
            "placement": "quotaOnly",
            "reservations": True,
            "lostWork": True,
            "minRuntime": "10m",
            "respectBudgets": True,
        },
    )
    assert (found.ready_timeout_s, found.recovery_timeout_s, found.block_admission) == (300.0, 90.0, True)
    assert (found.requeue_by, found.backoff_limit) == ("Creation", 3)
    assert (found.backoff_base_s, found.backoff_most_s) == (10.0, 100.0)
    assert (found.fair_sharing, found.fair_strategies) == (True, ("LessThanInitialShare",))
    assert (found.usage_half_life_s, found.usage_sampling_s, found.usage_weights) == (3600.0, 60.0, {"cpu": 0.5})
    assert (found.ignore_undeclared, found.placement, found.min_runtime_s) == (True, "quotaOnly", 600.0)
    assert (found.reservations, found.lost_work, found.respect_budgets) == (True, True, True)


def test_gates_are_turned_on_and_off_by_name() -> None:
    found = settings(featureGates={"TASBalancedPlacement": True, "PartialAdmission": False})
    assert "TASBalancedPlacement" in found.gates
    assert "PartialAdmission" not in found.gates
    assert found.gates > {"TopologyAwareScheduling"}


def test_nobody_blocks_where_nobody_waits() -> None:
    found = settings(waitForPodsReady={"enable": False, "blockAdmission": True})
    assert (found.wait_for_pods_ready, found.block_admission) == (False, False)


def test_a_length_of_time_that_is_none_is_told_by_its_field() -> None:
    with pytest.raises(UserError, match=r"admissionFairSharing.usageHalfLifeTime: .*soon"):
        settings(admissionFairSharing={"usageHalfLifeTime": "soon"})
