"""Collected pods, priorities and configurations of schedulers under Shoal's own scheduler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from build.collected_manifests import COLLECTED, applied, phases, why_pending
from build.kubectl_runs import Kubectl
from build.living_cluster import events, nodes_of, pod, pods, rolled_out, shoal, until, wait

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

GPU_NODES = ("dgx-a100-80-0", "dgx-a100-80-1", "p5-48xlarge-0", "p5-48xlarge-1", "v100-box-8-0")
AMPERE, HOPPER, VOLTA = set(GPU_NODES[:2]), set(GPU_NODES[2:4]), {GPU_NODES[4]}
LARGE = AMPERE | HOPPER


@contextmanager
def tainted(kubectl: Kubectl, taint: str, *nodes: str) -> Iterator[None]:
    kubectl("taint", "node", *nodes, taint)
    try:
        yield
    finally:
        kubectl("taint", "node", *nodes, f"{taint.partition('=')[0]}-")


def on(kubectl: Kubectl, selector: str = "") -> set[str]:
    return nodes_of(pods(kubectl, selector))


@pytest.mark.parametrize(
    ("path", "name", "nodes"),
    [("job-nodeselector-hopper", "h100-inference", HOPPER), ("job-affinity-80gb-8gpu", "large-model-training", LARGE)],
)
def test_a_job_runs_on_machines_of_its_kind_alone(kubectl: Kubectl, path: str, name: str, nodes: set[str]) -> None:
    applied(kubectl, f"scheduling/{path}.yaml")
    wait(kubectl, f"job/{name}", "condition=complete")
    assert on(kubectl) <= nodes


def test_four_gpus_each_are_placed_on_large_nodes(kubectl: Kubectl) -> None:
    applied(kubectl, "scheduling/deployment-topology-4gpu-triton.yaml")
    rolled_out(kubectl, "deployment/multi-gpu-inference")
    # Under the other name no A100 is one of those asked for.
    assert on(kubectl) == VOLTA


def test_limits_alone_are_requests_too_and_both_gpus_are_of_one_node(kubectl: Kubectl) -> None:
    applied(kubectl, "scheduling/pod-2-gpus-limits-only.yaml")
    wait(kubectl, "pod/gpu-pod", "condition=ready")
    given = kubectl.get("pod", "gpu-pod")
    assert given["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "2"}
    assert len(kubectl("exec", "gpu-pod", "--", "nvidia-smi", "-L").splitlines()) == 2


def test_a_preference_for_unknown_names_keeps_nobody_waiting_but_training_is_kept_off(kubectl: Kubectl) -> None:
    for at, node in enumerate(GPU_NODES[:4]):
        other = pod(f"other-{at}", nodeName=node)
        other["metadata"]["labels"] = {"workload-type": "training"}
        kubectl("create", "-f-", given=other)
    applied(kubectl, "scheduling/pod-affinity-a100-antiaffinity-training.yaml")
    wait(kubectl, "pod/training-job", "condition=ready")
    assert kubectl.get("pod", "training-job")["spec"]["nodeName"] in VOLTA


def test_a_name_without_the_vendor_waits_with_a_hint(kubectl: Kubectl) -> None:
    applied(kubectl, "scheduling/pod-affinity-a100-memory-gt.yaml")
    until(lambda: "7 node(s) didn't match Pod's node affinity/selector" in why_pending(kubectl))
    told = until(lambda: events(kubectl, "a100-training").get("FailedScheduling", ""))
    assert "did you mean NVIDIA-A100-SXM4-80GB" in told
    until(lambda: events(kubectl, "a100-training").get("UnknownProductName"))
    why = shoal("why", "pod/a100-training", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
    assert "NVIDIA-A100-SXM4-80GB" in why
    assert "advice" in why


def test_smoke_tests_run_on_one_gpu_and_print_what_people_look_for(kubectl: Kubectl) -> None:
    applied(kubectl, "scheduling/pod-cuda-vectoradd-smoke.yaml")
    with tainted(kubectl, "nvidia.com/gpu=present:NoSchedule", *LARGE):
        applied(kubectl, "scheduling/pod-nvidia-smi-smoke.yaml")
        wait(kubectl, "pod/gpu-test", "jsonpath={.status.phase}=Succeeded")
    assert "NVIDIA-SMI" in kubectl("logs", "gpu-test")
    wait(kubectl, "pod/cuda-vectoradd", "jsonpath={.status.phase}=Succeeded")
    assert kubectl("logs", "cuda-vectoradd").splitlines()[-1] == "Test PASSED"


def test_a_taint_of_another_value_is_named_to_whoever_asks(kubectl: Kubectl) -> None:
    with tainted(kubectl, "nvidia.com/gpu=true:NoSchedule", *GPU_NODES):
        applied(kubectl, "scheduling/pod-toleration-present.yaml")
        applied(kubectl, "scheduling/pod-cuda-vectoradd-smoke.yaml")
        applied(kubectl, "scheduling/pod-tolerations-gpu-and-training.yaml")
        wait(kubectl, "pod/inference-pod", "condition=ready")
        until(lambda: "5 node(s) had untolerated taint(s)" in why_pending(kubectl))
        for waiting in ("gpu-training-job", "cuda-vectoradd"):
            why = shoal("why", f"pod/{waiting}", "-n", kubectl.namespace, kubeconfig=kubectl.kubeconfig).out
            assert "untolerated taint {nvidia.com/gpu: true}" in why
    wait(kubectl, "pod/gpu-training-job", "condition=ready")


def test_two_taints_are_tolerated_by_who_tolerates_both(kubectl: Kubectl) -> None:
    with (
        tainted(kubectl, "nvidia.com/gpu=present:NoSchedule", *GPU_NODES),
        tainted(kubectl, "workload=training:NoSchedule", *GPU_NODES),
    ):
        applied(kubectl, "scheduling/pod-tolerations-gpu-and-training.yaml")
        applied(kubectl, "scheduling/pod-toleration-present.yaml")
        wait(kubectl, "pod/inference-pod", "condition=ready")
        until(lambda: phases(kubectl) == ["Pending", "Running"])


def test_a_pod_of_high_priority_takes_the_place_of_one_of_low(kubectl: Kubectl) -> None:
    text = (COLLECTED / "scheduling/priorityclasses-high-low-and-pod.yaml").read_text()
    *classes, high = text.split("---\n")
    kubectl("apply", "-f-", given="---\n".join(classes))
    low = [pod(f"low-{at}", gpus=8, priorityClassName="gpu-low-priority") for at in range(len(GPU_NODES))]
    kubectl("create", "-f-", given=low)
    until(lambda: phases(kubectl) == ["Running"] * len(GPU_NODES))
    kubectl("apply", "-f-", given=high)
    wait(kubectl, "pod/production-inference", "condition=ready")
    assert len(pods(kubectl)) == len(GPU_NODES)
    until(lambda: kubectl.get("events", "--field-selector=reason=Preempted")["items"])


def test_a_class_preempts_by_itself(kubectl: Kubectl) -> None:
    assert applied(kubectl, "scheduling/priorityclass-team-alpha.yaml").code == 0
    found = kubectl.get("priorityclass", "team-alpha-priority")
    assert (found["value"], found["preemptionPolicy"]) == (1000, "PreemptLowerPriority")


# -- what is no object of a cluster -----------------------------------------------------------------------------------


def test_a_node_without_a_name_is_refused(kubectl: Kubectl) -> None:
    path = COLLECTED / "scheduling/node-nvlink-labels.yaml"
    assert "resource name may not be empty" in kubectl.refused("apply", f"--filename={path}")
    assert "name or generateName is required" in kubectl.refused("create", f"--filename={path}")


@pytest.mark.parametrize("path", ["scheduling/kube-scheduler-binpack.yaml", "scheduling/kubelet-topology-manager.yaml"])
def test_configurations_of_programs_are_no_objects(kubectl: Kubectl, path: str) -> None:
    assert "no matches for kind" in kubectl.refused("apply", f"--filename={COLLECTED / path}")


@contextmanager
def scheduled_by(kubectl: Kubectl, config: Path) -> Iterator[None]:
    """A second scheduler beside the first, by this configuration and for the name that stands in it."""
    command = [sys.executable, "-m", "shoal", "run", "--controllers", "scheduler", "--config", str(config)]
    with subprocess.Popen(
        command, env=kubectl.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()


def test_collected_configurations_of_one_name_fill_one_node_or_spread_over_four(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    text = (COLLECTED / "scheduling/configmap-gpu-scheduler-leastallocated.yaml").read_text()
    spreading = tmp_path / "spreading.yaml"
    spreading.write_text(yaml.safe_load(text)["data"]["config.yaml"])
    packing = COLLECTED / "scheduling/kube-scheduler-binpack.yaml"
    for config, nodes in ((packing, 1), (spreading, 4)):
        given = [pod(f"small-{nodes}-{at}", gpus=1, schedulerName="gpu-scheduler") for at in range(4)]
        kubectl("create", "-f-", given=given)
        assert phases(kubectl) == ["Pending"] * 4
        with scheduled_by(kubectl, config):
            until(lambda: phases(kubectl) == ["Running"] * 4)
        assert len(on(kubectl)) == nodes
        kubectl("delete", "pods", "--all", "--grace-period=1")
