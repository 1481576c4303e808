"""Why a pod waits for GPUs: each cause alone, two at once, and what a diagnosis says that it could not check."""

from __future__ import annotations

import pytest

from build.diagnosed_clusters import GPU_TAINT, causes, diagnosed, event, gpu_node, operand, running, waiting
from build.manifests import Object, node, thing

WAITING = "team/train"
ALONE: dict[str, tuple[str, list[Object]]] = {
    "no node has a GPU": ("NoGpuNodes", [node("cpu-1")]),
    "the taint is not tolerated": ("TaintNotTolerated", [gpu_node(spec={"taints": [GPU_TAINT]}), node("cpu-1")]),
    "all GPU nodes are cordoned": ("NodesCordoned", [gpu_node(spec={"unschedulable": True})]),
    "the nodes are too small": ("RequestLargerThanNodes", [gpu_node(gpus=1)]),
    "all GPUs are in use": ("GpusInUse", [gpu_node(), running("other")]),
}


@pytest.mark.parametrize("case", ALONE)
def test_a_pod_that_waits_has_exactly_one_cause_if(case: str) -> None:
    identifier, objects = ALONE[case]
    assert causes("pod", WAITING, waiting(gpus=2), *objects) == [identifier]


def test_nodes_that_are_not_ready_are_a_cause_and_their_taints_are_not() -> None:
    lost = gpu_node(spec={"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]})
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    assert causes("pod", WAITING, waiting(), lost) == ["NodesNotReady"]


def test_a_toleration_of_another_value_is_named_beside_the_taint() -> None:
    tolerant = waiting(
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
    )
    (cause,) = diagnosed("pod", WAITING, tolerant, gpu_node(spec={"taints": [GPU_TAINT]})).causes
    assert "the pod tolerates nvidia.com/gpu=true, the nodes have nvidia.com/gpu=present" in cause.evidence


def test_a_taint_and_a_selector_are_two_causes() -> None:
    chosen = waiting(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"})
    found = diagnosed("pod", WAITING, chosen, gpu_node(spec={"taints": [GPU_TAINT]}))
    assert [cause.id for cause in found.causes] == ["TaintNotTolerated", "SelectorMatchesNoNode"]
    assert "nodes have NVIDIA-H100-80GB-HBM3" in found.causes[1].evidence[0]


def test_nodes_excluded_for_different_reasons_are_listed_in_one_cause() -> None:
    objects = [gpu_node("a", spec={"taints": [GPU_TAINT]}), gpu_node("b", spec={"unschedulable": True})]
    (cause,) = diagnosed("pod", WAITING, waiting(), *objects).causes
    assert cause.id == "NodesExcludedTogether"
    assert cause.evidence == ("node a: taints", "node b: cordon")


def test_the_holders_and_the_use_of_each_node_are_the_evidence_of_full_nodes() -> None:
    wants = waiting()
    said = event(wants, "FailedScheduling", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    (cause,) = diagnosed("pod", WAITING, wants, gpu_node(), running("a", 6), running("b", 2), said).causes
    assert cause.evidence[0] == "node gpu-1: 8 of 8 nvidia.com/gpu are in use"
    assert cause.evidence[1] == "held by team/a (6 on gpu-1), team/b (2 on gpu-1)"
    assert "Insufficient nvidia.com/gpu" in cause.evidence[2]


def test_ended_pods_hold_nothing() -> None:
    ended = running("a")
    ended["status"]["phase"] = "Succeeded"
    found = diagnosed("pod", WAITING, waiting(), gpu_node(), ended)
    assert found.causes == ()
    assert any("has the free nvidia.com/gpu" in each.what for each in found.ruled_out)


def test_a_mig_resource_under_the_strategy_single_is_not_advertised() -> None:
    slices = waiting(gpus=0, limits={"nvidia.com/mig-1g.10gb": 1})
    (cause,) = diagnosed("pod", WAITING, slices, gpu_node(labels={"nvidia.com/mig.strategy": "single"})).causes
    assert cause.id == "ResourceNotAdvertised"
    assert any("single names MIG devices nvidia.com/gpu" in text for text in cause.evidence)


def test_a_node_that_advertises_nothing_leads_to_its_broken_plugin() -> None:
    silent = gpu_node(gpus=0)
    broken = operand("nvidia-device-plugin-daemonset", waits="CrashLoopBackOff", last="error: no resources specified")
    assert causes("pod", WAITING, waiting(), silent, broken) == ["GpusNotAdvertised", "PluginConfigInvalid"]


def test_without_nodes_the_search_has_not_run() -> None:
    found = diagnosed("pod", WAITING, waiting())
    assert found.causes == ()
    assert [each.check for each in found.not_run] == ["the search for a node with GPUs", "what the autoscaler says"]


def pool(name: str = "gpus", **spec: object) -> Object:
    template = {"requirements": spec.pop("requirements", []), "taints": spec.pop("taints", [])}
    used = spec.pop("used", {})
    return thing(
        "karpenter.sh/v1", "NodePool", name, spec={"template": {"spec": template}, **spec}, status={"resources": used}
    )


LIMITED = pool(limits={"nvidia.com/gpu": "8"}, used={"nvidia.com/gpu": "8"})
WITHOUT_GPUS = pool(requirements=[{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"}])
TAINTED = pool(taints=[GPU_TAINT])
NO_CAPACITY = thing(
    "karpenter.sh/v1",
    "NodeClaim",
    "gpus-1",
    metadata={"name": "gpus-1", "labels": {"karpenter.sh/nodepool": "gpus"}},
    status={
        "conditions": [{"type": "Launched", "status": "False", "reason": "InsufficientCapacityError", "message": ""}]
    },
)


@pytest.mark.parametrize(
    ("objects", "identifier"),
    [
        ([LIMITED], "AutoscalerLimitReached"),
        ([WITHOUT_GPUS], "NoMatchingPool"),
        ([TAINTED], "PoolTaintNotTolerated"),
        ([pool(), NO_CAPACITY], "NoCloudCapacity"),
    ],
)
def test_karpenter_adds_no_node_for_one_cause(objects: list[Object], identifier: str) -> None:
    assert causes("pod", WAITING, waiting(), gpu_node(), running("other"), *objects) == ["GpusInUse", identifier]


def test_a_pool_that_suits_the_pod_is_no_cause() -> None:
    assert causes("pod", WAITING, waiting(), gpu_node(), running("other"), LIMITED, pool("more")) == ["GpusInUse"]


@pytest.mark.parametrize(
    ("message", "identifiers"),
    [
        ("pod didn't trigger scale-up: 1 max node group size reached", ["AutoscalerLimitReached"]),
        (
            "pod didn't trigger scale-up: 1 node(s) had untolerated taint {nvidia.com/gpu: present}",
            ["PoolTaintNotTolerated"],
        ),
        ("pod didn't trigger scale-up: 1 node(s) didn't match Pod's node affinity/selector", ["NoMatchingPool"]),
        ("pod didn't trigger scale-up: 1 in backoff after failed scale-up", ["NoCloudCapacity"]),
        (
            "pod didn't trigger scale-up: 1 max node group size reached, 1 node(s) had untolerated taint {a: b}",
            ["AutoscalerLimitReached", "PoolTaintNotTolerated"],
        ),
    ],
)
def test_cluster_autoscaler_says_why_in_an_event(message: str, identifiers: list[str]) -> None:
    wants = waiting()
    said = event(wants, "NotTriggerScaleUp", message)
    assert causes("pod", WAITING, wants, gpu_node(), running("other"), said) == ["GpusInUse", *identifiers]
