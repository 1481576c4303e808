"""What a configuration, limit ranges and runtime classes among the manifests make of the workloads beside them."""

from __future__ import annotations

from typing import Any

import pytest

from build.manifests import Object, job, thing
from build.queue_manifests import IN_Q, configuration, flavor, local_queue, only, queues, workload, world
from shoal.engine.queues.settings import Settings

GPU_CLASS = "gpu.example.com"


def claiming(*claims: str) -> Object:
    written = job("t/a", 1, labels=IN_Q)
    written["spec"]["template"]["spec"]["resourceClaims"] = [
        {"name": f"c{index}", "resourceClaimTemplateName": claim} for index, claim in enumerate(claims)
    ]
    return written


def claim_template(name: str, *requests: Object) -> Object:
    return thing(
        "resource.k8s.io/v1", "ResourceClaimTemplate", name, spec={"spec": {"devices": {"requests": requests}}}
    )


def request(name: str = "r", **exactly: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": GPU_CLASS, **exactly}}


def mapped() -> Object:
    return configuration(resources={"deviceClassMappings": [{"name": "whole-gpus", "deviceClassNames": [GPU_CLASS]}]})


def test_without_a_configuration_nobody_waits_for_pods() -> None:
    assert world(*queues()).settings == Settings()
    assert world(*queues(), configuration()).settings.wait_for_pods_ready


def test_exclusions_and_exchanges_hold_for_jobs_and_for_workloads() -> None:
    settings = configuration(
        resources={
            "excludeResourcePrefixes": ["example.com/"],
            "transformations": [{"input": "cpu", "strategy": "Replace", "outputs": {"credits": 2}}],
        }
    )
    written = job("t/a", 1, labels=IN_Q)
    written["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": 3, "example.com/x": 1}
    for each in (only(settings, written), only(settings, workload(podSets=[{"template": template_of(written)}]))):
        assert each.pod_sets[0].requests == {"credits": 6}
        assert each.pod_sets[0].on_node == {"cpu": 3000, "example.com/x": 1}


def template_of(written: Object) -> Object:
    found: Object = written["spec"]["template"]
    return found


def test_limit_ranges_hold_in_their_own_namespace() -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": 2}}]
    here = thing("v1", "LimitRange", "t/l", spec={"limits": limits})
    assert only(here, job("t/a", 1, labels=IN_Q)).pod_sets[0].requests == {"cpu": 2000}
    there = thing("v1", "LimitRange", "u/l", spec={"limits": limits})
    assert only(there, job("t/a", 1, labels=IN_Q)).pod_sets[0].requests == {}


def test_a_workload_that_may_not_run_is_there_and_says_why() -> None:
    limits = [{"type": "Pod", "max": {"cpu": "500m"}}]
    facts = only(thing("v1", "LimitRange", "t/l", spec={"limits": limits}), workload())
    assert facts.fault.startswith("resources didn't satisfy LimitRange constraints: ")


def test_what_a_runtime_costs_is_charged() -> None:
    kata = thing("node.k8s.io/v1", "RuntimeClass", "kata", overhead={"podFixed": {"cpu": "250m"}})
    written = job("t/a", 1, labels=IN_Q)
    template_of(written)["spec"]["runtimeClassName"] = "kata"
    assert only(kata, written).pod_sets[0].requests == {"cpu": 250}


def test_claimed_devices_are_counted_under_the_name_of_their_class() -> None:
    facts = only(
        mapped(), claim_template("t/two", request(count=2)), claim_template("t/one", request()), claiming("two", "one")
    )
    assert facts.pod_sets[0].requests == {"whole-gpus": 3}
    assert facts.pod_sets[0].on_node == {}, "no node has such a resource"


def test_without_a_mapping_claims_are_not_counted() -> None:
    facts = only(claim_template("t/two", request(count=2)), claiming("two"))
    assert (facts.pod_sets[0].requests, facts.fault) == ({}, "")


UNCOUNTABLE = {
    "all devices": (request(allocationMode="All"), "asks for all devices"),
    "alternatives": (
        {"name": "r", "firstAvailable": [{"name": "x", "deviceClassName": GPU_CLASS}]},
        "leaves alternatives open",
    ),
    "a class without a name in quota": (request(deviceClassName="other"), "DeviceClass other is not mapped"),
}


@pytest.mark.parametrize(("asked", "words"), UNCOUNTABLE.values(), ids=UNCOUNTABLE)
def test_a_claim_that_cannot_be_counted_is_not_let_through(asked: Object, words: str) -> None:
    assert words in only(mapped(), claim_template("t/c", asked), claiming("c")).fault


def test_a_queue_that_counts_in_thousandths_counts_the_fractions_of_its_own_workloads() -> None:
    quota = [{"name": "shoal.dev/gpu-milli", "nominalQuota": 8000}]
    group = {"coveredResources": ["shoal.dev/gpu-milli"], "flavors": [{"name": "f", "resources": quota}]}
    spec = {"resourceGroups": [group], "namespaceSelector": {}}
    cluster = thing("kueue.x-k8s.io/v1beta2", "ClusterQueue", "cq", spec=spec)
    part = job("t/a", 1, labels=IN_Q, template={"annotations": {"gpu-fraction": "0.5"}})
    slices = job("t/b", 1, labels=IN_Q)
    template_of(slices)["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/mig-1g.10gb": 2}
    worth = configuration(shoal={"gpuEquivalents": {"nvidia.com/mig-1g.10gb": "0.15"}})
    found = world(flavor(), cluster, local_queue(), worth, part, slices)
    assert [facts.pod_sets[0].requests for facts in found.workloads] == [
        {"shoal.dev/gpu-milli": 500},
        {"shoal.dev/gpu-milli": 300},
    ]
