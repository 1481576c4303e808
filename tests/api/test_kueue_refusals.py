"""What Kueue's webhooks refuse is refused here: object, field, and what would be right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shoal.api.decode import read
from shoal.units.errors import UserError

VERSION = "kueue.x-k8s.io/v1beta2"

Plain = dict[str, Any]


def quota(name: str, nominal: object = "1", **limits: object) -> Plain:
    return {"name": name, "nominalQuota": nominal, **limits}


def group(*flavors: str, resources: tuple[str, ...] = ("cpu",), **limits: object) -> Plain:
    return {
        "coveredResources": list(resources),
        "flavors": [{"name": name, "resources": [quota(one, **limits) for one in resources]} for name in flavors],
    }


def queue(*groups: Plain, **spec: object) -> Plain:
    return thing("ClusterQueue", spec={"namespaceSelector": {}, "resourceGroups": list(groups), **spec})


def cohort(*groups: Plain, **spec: object) -> Plain:
    return thing("Cohort", spec={"resourceGroups": list(groups), **spec})


def flavor(**spec: object) -> Plain:
    return thing("ResourceFlavor", spec=spec)


def thing(kind: str, **rest: object) -> Plain:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": "x"}, **rest}


def pod_set(name: str = "main", count: int = 2, requests: Plain | None = None, **rest: object) -> Plain:
    container = {"name": "c", "resources": {"requests": requests or {"cpu": "1"}}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [container]}}, **rest}


def workload(*pod_sets: Plain, status: Plain | None = None, **spec: object) -> Plain:
    return thing("Workload", spec={"podSets": list(pod_sets), **spec}, status=status or {})


def wishing(**request: object) -> Plain:
    return workload(pod_set(topologyRequest=request))


def placed(**assignment: object) -> Plain:
    one = {"name": "main", "topologyAssignment": {"levels": ["rack"], **assignment}}
    return workload(pod_set(), status={"admission": {"clusterQueue": "cq", "podSetAssignments": [one]}})


def assigned(**assignment: object) -> Plain:
    one = {"name": "main", **assignment}
    return workload(pod_set(), status={"admission": {"clusterQueue": "cq", "podSetAssignments": [one]}})


def piece(count: int, values: Plain, pods: Plain) -> list[Plain]:
    return [{"domainCount": count, "valuesPerLevel": [values], "podCounts": pods}]


REFUSED: dict[str, tuple[Plain, str, str]] = {
    "a borrowing limit without a cohort": (
        queue(group("a", borrowingLimit="1")),
        "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit",
        "set spec.cohortName or leave the limit out",
    ),
    "a lending limit without a cohort": (
        queue(group("a", lendingLimit="1")),
        "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        "without spec.cohortName",
    ),
    "a limit in a cohort at the root": (
        cohort(group("a", borrowingLimit="1")),
        "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit",
        "without spec.parentName",
    ),
    "a quota below zero": (
        queue({"coveredResources": ["cpu"], "flavors": [{"name": "a", "resources": [quota("cpu", "-1")]}]}),
        "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
        "must be 0 or more, got -1",
    ),
    "a borrowing limit below zero": (
        queue(group("a", borrowingLimit="-1"), cohortName="c"),
        "resources[0].borrowingLimit",
        "must be 0 or more",
    ),
    "a queue that lends more than it has": (
        queue(group("a", lendingLimit="2"), cohortName="c"),
        "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        "must be at most the nominalQuota of 1, got 2",
    ),
    "a flavor that leaves out a covered resource": (
        queue({**group("a"), "coveredResources": ["cpu", "memory"]}),
        "spec.resourceGroups[0].flavors[0].resources",
        "memory is missing",
    ),
    "a flavor that lists a resource that is not covered": (
        queue({**group("a", resources=("cpu", "memory")), "coveredResources": ["cpu"]}),
        "spec.resourceGroups[0].flavors[0].resources",
        "memory is not covered",
    ),
    "a flavor that lists the resources in another order": (
        queue({**group("a", resources=("cpu", "memory")), "coveredResources": ["memory", "cpu"]}),
        "spec.resourceGroups[0].flavors[0].resources",
        "in another order",
    ),
    "a resource in two groups": (
        queue(group("a"), group("b")),
        "spec.resourceGroups[1].coveredResources[0]",
        '"cpu" is already in resourceGroups[0]',
    ),
    "a flavor in two groups": (
        queue(group("a"), group("a", resources=("memory",))),
        "spec.resourceGroups[1].flavors[0].name",
        '"a" is already in resourceGroups[0]',
    ),
    "a flavor twice in one group": (queue(group("a", "a")), "spec.resourceGroups[0].flavors[1].name", "named twice"),
    "a flavor whose name is none": (queue(group("A_b")), "spec.resourceGroups[0].flavors[0].name", "is not a name"),
    "a resource whose name is none": (
        queue(group("a", resources=("c pu",))),
        "spec.resourceGroups[0].coveredResources[0]",
        "is not a resource name",
    ),
    "a group of nothing": (
        queue({"coveredResources": [], "flavors": []}),
        "spec.resourceGroups[0].coveredResources",
        "at least one item",
    ),
    "more groups than Kueue takes": (
        queue(*(group(f"f{n}", resources=(f"r{n}",)) for n in range(17))),
        "spec.resourceGroups",
        "at most 16 items, got 17",
    ),
    "more flavors in a group than Kueue takes": (
        queue(group(*(f"f{n}" for n in range(65)))),
        "spec.resourceGroups[0].flavors",
        "at most 64 items, got 65",
    ),
    "more pairs in a group than Kueue takes": (
        queue(group(*(f"f{n}" for n in range(33)), resources=tuple(f"r{n}" for n in range(16)))),
        "spec.resourceGroups[0]",
        "at most 512 pairs of flavor and resource, got 528",
    ),
    "more flavors in all than Kueue takes": (
        queue(*(group(*(f"f{n}-{m}" for m in range(52)), resources=(f"r{n}",)) for n in range(5))),
        "spec.resourceGroups",
        "at most 256 flavors in all, got 260",
    ),
    "preemption while borrowing without reclaiming": (
        queue(preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
        "spec.preemption.borrowWithinCohort.policy",
        "contradicts reclaimWithinCohort: Never",
    ),
    "a preference where the search may stop": (
        queue(
            flavorFungibility={
                "whenCanBorrow": "TryNextFlavor",
                "whenCanPreempt": "MayStopSearch",
                "preference": "PreemptionOverBorrowing",
            }
        ),
        "spec.flavorFungibility.preference",
        "both TryNextFlavor",
    ),
    "an old word in a new document": (
        queue(flavorFungibility={"whenCanBorrow": "Borrow"}),
        "spec.flavorFungibility.whenCanBorrow",
        "supported values are MayStopSearch, TryNextFlavor",
    ),
    "a check that is demanded twice": (
        queue(admissionChecksStrategy={"admissionChecks": [{"name": "a"}, {"name": "a"}]}),
        "spec.admissionChecksStrategy.admissionChecks[1].name",
        "named twice",
    ),
    "a weight below zero": (queue(fairSharing={"weight": "-1"}), "spec.fairSharing.weight", "0 or more"),
    "a weight too small to divide by": (
        queue(fairSharing={"weight": "1n"}),
        "spec.fairSharing.weight",
        "must be 0 or greater than 1n",
    ),
    "a strategy nobody has": (queue(queueingStrategy="LIFO"), "spec.queueingStrategy", "StrictFIFO"),
    "two names for one cohort": (
        queue(cohort="a", cohortName="b"),
        "spec.cohort",
        'says "a" where cohortName says "b"; keep cohortName',
    ),
    "a last flavor that the queue does not have": (
        queue(concurrentAdmissionPolicy={"migration": {"constraints": {"lastAcceptableFlavorName": "b"}}}),
        "concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName",
        '"b" is not one of',
    ),
    "a cohort that is its own parent": (cohort(parentName="x"), "spec.parentName", "cannot be its own parent"),
    "a local queue to nowhere at all": (thing("LocalQueue", spec={}), "spec.clusterQueue", "is required"),
    "a topology without a label of its nodes": (
        flavor(topologyName="racks"),
        "spec.nodeLabels",
        "at least one is required with a topologyName",
    ),
    "more labels of a flavor than Kueue takes": (
        flavor(nodeLabels={f"l{n}": "v" for n in range(9)}),
        "spec.nodeLabels",
        "at most 8 items, got 9",
    ),
    "a label of a flavor that is none": (flavor(nodeLabels={"-a": "v"}), "spec.nodeLabels", "is not a label key"),
    "a toleration without its operator": (
        flavor(tolerations=[{"value": "v"}]),
        "spec.tolerations[0].operator",
        "must be Exists when key is empty",
    ),
    "a priority class without a value": (thing("WorkloadPriorityClass"), "value", "is required"),
    "a priority class that contradicts itself": (
        thing("WorkloadPriorityClass", value=1, spec={"value": 2}),
        "spec.value",
        "says 2 where value says 1",
    ),
    "a priority that is no number": (
        thing("WorkloadPriorityClass", spec={"value": "high"}),
        "value",
        "expected a whole number",
    ),
    "a check of no controller": (
        thing("AdmissionCheck", spec={"controllerName": ""}),
        "spec.controllerName",
        "required",
    ),
    "parameters without a group": (
        thing("AdmissionCheck", spec={"controllerName": "c", "parameters": {"apiGroup": "", "kind": "K", "name": "n"}}),
        "spec.parameters.apiGroup",
        "is required",
    ),
    "a workload of no pods": (workload(), "spec.podSets", "at least one item"),
    "a workload of too many pod sets": (
        workload(*(pod_set(f"p{n}") for n in range(19))),
        "spec.podSets",
        "at most 18 items, got 19",
    ),
    "two pod sets of one name": (workload(pod_set(), pod_set()), "spec.podSets[1].name", "named twice"),
    "a pod set whose name is none": (workload(pod_set("Main")), "spec.podSets[0].name", "is not a pod set name"),
    "a least count above the count": (
        workload(pod_set(minCount=3)),
        "spec.podSets[0].minCount",
        "must be at most the count of 2, got 3",
    ),
    "two pod sets that may shrink": (
        workload(pod_set("a", minCount=1), pod_set("b", minCount=1)),
        "spec.podSets[1].minCount",
        'only one pod set can have it, and "a" has',
    ),
    "a count below zero": (workload(pod_set(count=-1)), "spec.podSets[0].count", "at least 0, got -1"),
    "a request of pods": (
        workload(pod_set(requests={"pods": "1"})),
        "containers[0].resources.requests.pods",
        "pods are counted",
    ),
    "a request below zero": (
        workload(pod_set(requests={"cpu": "-1"})),
        "containers[0].resources.requests.cpu",
        "must be 0 or more",
    ),
    "a class without its value": (
        workload(pod_set(), priorityClassRef={"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "h"}),
        "spec.priority",
        'is required with a priority class ("h")',
    ),
    "a class of the wrong group": (
        workload(
            pod_set(),
            priority=1,
            priorityClassRef={"group": "scheduling.k8s.io", "kind": "WorkloadPriorityClass", "name": "h"},
        ),
        "spec.priorityClassRef.group",
        "write kueue.x-k8s.io",
    ),
    "no time to run in": (
        workload(pod_set(), maximumExecutionTimeSeconds=0),
        "spec.maximumExecutionTimeSeconds",
        "at least 1",
    ),
    "two wishes for one topology": (
        wishing(required="rack", preferred="block"),
        "spec.podSets[0].topologyRequest",
        "required and preferred cannot be both set",
    ),
    "slices without a size": (
        wishing(required="block", podSetSliceRequiredTopology="rack"),
        "spec.podSets[0].topologyRequest.podSetSliceSize",
        "is required",
    ),
    "a size without slices": (
        wishing(required="block", podSetSliceSize=2),
        "spec.podSets[0].topologyRequest.podSetSliceRequiredTopology",
        "is required",
    ),
    "slices of nothing": (
        wishing(podSetSliceRequiredTopology="rack", podSetSliceSize=0),
        "spec.podSets[0].topologyRequest.podSetSliceSize",
        "must be at least 1",
    ),
    "slices within slices that do not fit": (
        wishing(podsetSliceRequiredTopologyConstraints=[{"topology": "a", "size": 4}, {"topology": "b", "size": 3}]),
        "podsetSliceRequiredTopologyConstraints[1].size",
        "must divide the size of the layer above (4), got 3",
    ),
    "a group of one pod set": (
        wishing(required="rack", podSetGroupName="g"),
        "topologyRequest.podSetGroupName",
        "exactly two pod sets, got 1",
    ),
    "a group without a leader": (
        workload(
            pod_set("a", topologyRequest={"required": "rack", "podSetGroupName": "g"}),
            pod_set("b", topologyRequest={"required": "rack", "podSetGroupName": "g"}),
        ),
        "spec.podSets[1].topologyRequest.podSetGroupName",
        "the leader",
    ),
    "a group of two minds": (
        workload(
            pod_set("a", 1, topologyRequest={"required": "rack", "podSetGroupName": "g"}),
            pod_set("b", topologyRequest={"required": "block", "podSetGroupName": "g"}),
        ),
        "spec.podSets[1].topologyRequest.podSetGroupName",
        "must request the same topology",
    ),
    "an assignment of a pod set that is not there": (
        workload(pod_set(), status={"admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "other"}]}}),
        "status.admission.podSetAssignments[0].name",
        "they are main",
    ),
    "a pod set without an assignment": (
        workload(
            pod_set("a"),
            pod_set("b"),
            status={"admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "a"}]}},
        ),
        "status.admission.podSetAssignments",
        'pod set "b" has no assignment',
    ),
    "a usage that pods cannot share": (
        assigned(count=3, resourceUsage={"cpu": "1"}),
        "podSetAssignments[0].resourceUsage.cpu",
        "not divisible by the count of 3",
    ),
    "more pods given back than there are": (
        workload(pod_set(), status={"reclaimablePods": [{"name": "main", "count": 3}]}),
        "status.reclaimablePods[0].count",
        "at most the count of 2, got 3",
    ),
    "a state of a check that is none": (
        workload(pod_set(), status={"admissionChecks": [{"name": "c", "state": "Maybe"}]}),
        "status.admissionChecks[0].state",
        "Rejected",
    ),
    "values for more domains than the slice has": (
        placed(slices=piece(2, {"individual": {"roots": ["a", "b", "c"]}}, {"universal": 1})),
        "slices[0].valuesPerLevel[0].individual",
        "one for each of the 2 domains, got 3",
    ),
    "pods of fewer domains than the slice has": (
        placed(slices=piece(2, {"universal": "a"}, {"individual": [1]})),
        "slices[0].podCounts.individual",
        "one for each of the 2 domains, got 1",
    ),
    "neither one value nor many": (
        placed(slices=piece(1, {}, {"universal": 1})),
        "valuesPerLevel[0]",
        "exactly one of",
    ),
    "more domains than memory holds": (
        placed(slices=piece(2_000_000_000, {"universal": "a"}, {"universal": 1})),
        "slices[0].domainCount",
        "must be 1 to 100000",
    ),
    "a slice that leaves out a level": (
        placed(slices=[{"domainCount": 1, "valuesPerLevel": [], "podCounts": {"universal": 1}}]),
        "slices[0].valuesPerLevel",
        "one entry for each of the 1 levels, got 0",
    ),
}


@pytest.mark.parametrize(("raw", "field", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(raw: Plain, field: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        read(json.dumps(raw), "x.json")
    text = str(caught.value)
    assert f"{raw['kind']} {'default/' if raw['kind'] in {'Workload', 'LocalQueue'} else ''}x" in text
    assert caught.value.where.path.endswith(field)
    assert why in text


ACCEPTED: dict[str, Plain] = {
    "limits in a cohort": queue(group("a", borrowingLimit="0", lendingLimit="1"), cohortName="c"),
    "a cohort that lends what its members leave over": cohort(group("a", lendingLimit="5"), parentName="root"),
    "a quota of half a device": queue(
        {
            "coveredResources": ["example.com/gpu"],
            "flavors": [{"name": "a", "resources": [quota("example.com/gpu", 0.5)]}],
        }
    ),
    "a preference where both try the next flavor": queue(
        flavorFungibility={
            "whenCanBorrow": "TryNextFlavor",
            "whenCanPreempt": "TryNextFlavor",
            "preference": "BorrowingOverPreemption",
        }
    ),
    "a weight of zero": queue(fairSharing={"weight": 0}),
    "never borrowing, said aloud": queue(preemption={"borrowWithinCohort": {"policy": "Never"}}),
    "a queue without quota": queue(),
    "eighteen pod sets": workload(*(pod_set(f"p{n}") for n in range(18))),
    "devices without a limit beside the request": workload(pod_set(requests={"nvidia.com/gpu": "2"})),
    "a pod set of no pods": workload(pod_set(count=0)),
    "a leader and its workers": workload(
        pod_set("leader", 1, topologyRequest={"required": "rack", "podSetGroupName": "g"}),
        pod_set("workers", 4, topologyRequest={"required": "rack", "podSetGroupName": "g"}),
    ),
    "slices within slices": wishing(
        podsetSliceRequiredTopologyConstraints=[{"topology": "a", "size": 4}, {"topology": "b", "size": 2}]
    ),
    "a flavor without anything": flavor(),
}


@pytest.mark.parametrize("raw", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(raw: Plain) -> None:
    assert len(read(json.dumps(raw), "x.json")) == 1


@pytest.mark.parametrize("spell", [json.dumps, lambda raw: "# yaml\n" + json.dumps(raw)])
def test_json_and_yaml_are_refused_alike(spell: Callable[[Plain], str]) -> None:
    with pytest.raises(UserError, match="must be 0 or more"):
        read(spell(queue(group("a", borrowingLimit="-1"), cohortName="c")))
