"""What `shoal why` proposes for work in queues, and for pods that a ResourceQuota refuses."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, job, node, pod, thing
from build.why_answers import WhyAnswers, of_cluster
from shoal.data.gpus import PRODUCT_LABEL


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


# -- work in queues ------------------------------------------------------------------------------------------------


def queued(gpus: int, level: str = "") -> list[Object]:
    """A job of two pods with four GPUs each in a queue with some quota, on nodes of one rack."""
    version = "kueue.x-k8s.io/v1beta2"
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "f", "resources": resources}]}]
    levels = [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    annotations = {"annotations": {"kueue.x-k8s.io/podset-required-topology": level}} if level else {}
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    flavor = {"nodeLabels": {"example.com/rack": "a"}, **({"topologyName": "racks"} if level else {})}
    return [
        of_cluster(node("n", 8, labels={"example.com/rack": "a", "kubernetes.io/hostname": "n"})),
        thing(version, "Topology", "racks", spec={"levels": levels}),
        thing(version, "ResourceFlavor", "f", spec=flavor),
        thing(version, "ClusterQueue", "team", spec={"namespaceSelector": {}, "resourceGroups": groups}),
        thing(version, "LocalQueue", "t/q", spec={"clusterQueue": "team"}),
        job("t/train", 2, 4, labels=labels, template=annotations, suspend=True, completions=2),
    ]


def test_a_level_that_no_node_has_is_corrected_in_a_queued_job(told: WhyAnswers) -> None:
    text = told("job/train", *queued(8, "example.com/rackk"))
    assert "No node has a label example.com/rackk; did you mean example.com/rack?" in text
    assert "kubectl patch job train -n t --type=json" in text
    # With the correct level quota would be lacking, so that the patch alone is no remedy.
    assert "kubectl patch job" not in told("job/train", *queued(4, "example.com/rackk"))


def test_a_misspelled_gpu_product_is_corrected_by_a_command(told: WhyAnswers) -> None:
    waits = pod("t/a", 1, nodeSelector={PRODUCT_LABEL: "NVIDIA-A100-SXM4-80G"})
    nodes = of_cluster(node("n", 8, labels={PRODUCT_LABEL: "NVIDIA-A100-SXM4-80GB"}))
    assert "did you mean NVIDIA-A100-SXM4-80GB?" in told("pod/a", nodes, waits)
    (remedy,) = told.document("pod/a", nodes, waits)["remedies"]
    assert "NVIDIA-A100-SXM4-80GB" in remedy["commands"][0]


def test_a_level_is_corrected_only_where_the_flavor_has_a_topology(told: WhyAnswers) -> None:
    objects = queued(8, "example.com/rackk")
    flavor = next(each for each in objects if each["kind"] == "ResourceFlavor")
    del flavor["spec"]["topologyName"]
    text = told("job/train", *objects)
    assert "No node has a label example.com/rackk." in text
    assert "ResourceFlavor f has no spec.topologyName" in text
    assert "did you mean" not in text
    assert "set spec.topologyName of a flavor that its queue covers" in text
    assert "Look at its node selector" not in text


def test_quota_has_a_command_and_is_raised_only_where_the_pods_then_run(told: WhyAnswers) -> None:
    path = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
    patch = f'[{{"op":"add","path":"{path}","value":"8"}}]'
    assert f"kubectl patch clusterqueue team --type=json -p='{patch}'" in told("job/train", *queued(4))
    full = told("job/train", *queued(4), pod("t/notebook", 2, on="n"))
    assert "nodes 1 of 1 would take it; not all of its 2 pods fit at once" in full
    assert "Two changes are needed. First: Free 2 GPUs on n (t/notebook). Then: Raise nominalQuota" in full
    text = told("job/train", *queued(4), pod("t/other", 8, on="n", priority=100))
    assert "would help Raise" not in text


# -- quotas of the namespace ---------------------------------------------------------------------------------------


def quota(gpus: int) -> Object:
    return thing("v1", "ResourceQuota", "t/gpus", spec={"hard": {"requests.nvidia.com/gpu": gpus}})


def test_pods_that_a_quota_refuses_are_told_with_its_figures(told: WhyAnswers) -> None:
    text = told("job/over", node("n", 8), quota(4), job("t/over", 2, 4))
    assert "waits: its pods are not created: ExceededQuota" in text
    assert (
        "ResourceQuota gpus would be exceeded: 4 of 4 requests.nvidia.com/gpu used, a pod requests 4, 4 missing" in text
    )
    assert "Raise requests.nvidia.com/gpu from 4 to 8 in ResourceQuota gpus." in text
    assert "waits: it is not created" in told("pod/over-1", node("n", 8), quota(4), job("t/over", 2, 4))


def test_quota_is_not_raised_for_pods_that_the_nodes_cannot_take(told: WhyAnswers) -> None:
    text = told("job/over", node("n", 4), quota(4), job("t/over", 2, 4))
    assert "would be exceeded" in text
    assert "Raise" not in text


def quotas(**hard: dict[str, Any]) -> list[Object]:
    return [of_cluster(thing("v1", "ResourceQuota", f"t/{name}", spec={"hard": each})) for name, each in hard.items()]


def hard_after(commands: list[str], found: list[Object]) -> list[Object]:
    """The quotas after the commands."""
    found = copy.deepcopy(found)
    for command in commands:
        name = command.split()[3]
        (raised,) = [each for each in found if each["metadata"]["name"] == name]
        raised["spec"]["hard"] |= json.loads(command.partition("-p='")[2].rstrip("'"))["spec"]["hard"]
    return found


GPUS = "requests.nvidia.com/gpu"
REFUSING = {
    "two quotas": (quotas(qa={GPUS: 4}, qb={GPUS: 2}), ["qa", "qb"]),
    "three quotas in turn": (quotas(qa={GPUS: 1}, qb={GPUS: 2}, qc={"pods": 1}), ["qa", "qb", "qc"]),
    "the controller and its pods": (quotas(qa={GPUS: 1, "count/jobs.batch": 0}), ["qa"]),
    "the controller by another quota": (quotas(qa={"count/jobs.batch": 0}, qb={GPUS: 1}), ["qa", "qb"]),
}


@pytest.mark.parametrize(("found", "names"), REFUSING.values(), ids=REFUSING)
def test_the_pods_are_admitted_after_all_quotas_are_raised_as_told(
    told: WhyAnswers, found: list[Object], names: list[str]
) -> None:
    objects = [of_cluster(node("n", 8)), job("t/over", 2, 4)]
    (remedy,) = told.document("job/over", *objects, *found)["remedies"]
    assert sorted(command.split()[3] for command in remedy["commands"]) == names
    after = told("job/over", *objects, *hard_after(remedy["commands"], found))
    assert "ExceededQuota" not in after
    assert "ResourceQuota" not in after


def test_a_quota_on_controllers_is_told_with_the_controller_that_it_refuses(told: WhyAnswers) -> None:
    text = told("job/over", node("n", 8), job("t/over", 2, 4), *quotas(qa={"count/jobs.batch": 0}))
    assert "0 of 0 count/jobs.batch used, jobs.batch over requests 1, 1 missing" in text
    assert "Raise count/jobs.batch from 0 to 1 in ResourceQuota qa." in text


def test_quota_that_other_pods_take_first_is_raised_for_these_too(told: WhyAnswers) -> None:
    objects = [of_cluster(node("n", 12)), *quotas(qa={GPUS: 4}), job("t/over", 3, 4)]
    text = told("pod/over-2", *objects)
    assert "4 of 4 requests.nvidia.com/gpu used, a pod requests 4, 8 missing, those of pods that come first" in text
    assert "Raise requests.nvidia.com/gpu from 4 to 12 in ResourceQuota qa." in text


def test_quota_is_no_remedy_for_pods_that_are_refused_for_another_reason_too(told: WhyAnswers) -> None:
    limits = thing("v1", "LimitRange", "t/lr", spec={"limits": [{"type": "Pod", "max": {"nvidia.com/gpu": 2}}]})
    text = told("job/over", node("n", 8), job("t/over", 2, 4), limits, *quotas(qa={"count/jobs.batch": 0}))
    assert "With this quota, the API server would still refuse them: pods" in text
    assert "maximum nvidia.com/gpu usage per Pod is 2" in text
    assert "Raise" not in text
