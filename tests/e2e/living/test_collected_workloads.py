"""Collected manifests of inference and training on a fleet of many kinds: they reach the state their index says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.collected_manifests import COLLECTED, applied, claim, phases, storage_class, why_pending
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import living, namespaces_in, nodes_of, pods, rolled_out, until, wait

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

FLEET = (
    "1xdgx-a100-80,1xp5.48xlarge,1xv100-box-8,2xcpu-64,"
    "1xp4d.24xlarge[mig=all-1g.5gb],1xdgx-a100-80[mig=all-1g.10gb,name=cut]"
)
AMPERE, HOPPER, VOLTA = "dgx-a100-80-0", "p5-48xlarge-0", "v100-box-8-0"
NO_SUCH_LABEL = "0/7 nodes are available: 7 node(s) didn't match Pod's node affinity/selector"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with living(tmp_path_factory.mktemp("fleet"), FLEET, "--memory", "--speed", "60") as server:
        yield server


@pytest.fixture(scope="module")
def namespaces(fleet: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(fleet.kubeconfig, kubectl_home))


@pytest.fixture
def kubectl(namespaces: Iterator[Kubectl]) -> Iterator[Kubectl]:
    """In a namespace whose pods are gone afterwards, so that every test has the whole fleet."""
    inside = next(namespaces)
    yield inside
    inside("delete", "deployments,statefulsets,jobs,pods", "--all", "--cascade=foreground", "--grace-period=1")


@pytest.fixture
def labelled(kubectl: Kubectl) -> Iterator[Kubectl]:
    """The label that nobody sets by himself is on a node with GPUs."""
    kubectl("label", "node", AMPERE, "accelerator=nvidia")
    yield kubectl
    kubectl("label", "node", AMPERE, "accelerator-")


def missing(name: str) -> str:
    return f'0/7 nodes are available: persistentvolumeclaim "{name}" not found'


# -- inference --------------------------------------------------------------------------------------------------------


def test_comfyui_waits_for_its_claim_by_name(labelled: Kubectl) -> None:
    applied(labelled, "inference/comfyui.yaml")
    until(lambda: why_pending(labelled) == missing("comfyui-models-pvc"))
    labelled("create", "-f-", given=claim("comfyui-models-pvc"))
    rolled_out(labelled, "deployment/comfyui")
    assert nodes_of(pods(labelled)) == {AMPERE}


def test_ollama_loads_its_models_first_and_keeps_them(labelled: Kubectl) -> None:
    labelled("create", "-f-", given=storage_class("fast-ssd", "WaitForFirstConsumer"))
    applied(labelled, "inference/ollama-multi-model.yaml")
    rolled_out(labelled, "statefulset/ollama")
    (one,) = pods(labelled)
    assert one["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert labelled.get("pvc", "ollama-models-pvc")["status"]["phase"] == "Bound"
    until(lambda: one["status"]["podIP"] in labelled("get", "endpoints", "ollama-service"))


def test_open_webui_needs_no_gpu_and_keeps_off_tainted_nodes(kubectl: Kubectl) -> None:
    tainted = (AMPERE, HOPPER, VOLTA, "p4d-24xlarge-0", "cut-0")
    kubectl("taint", "node", *tainted, "nvidia.com/gpu=present:NoSchedule")
    try:
        applied(kubectl, "inference/open-webui.yaml")
        rolled_out(kubectl, "deployment/open-webui")
        assert nodes_of(pods(kubectl)) <= {"cpu-64-0", "cpu-64-1"}
        assert kubectl.get("service", "open-webui")["spec"]["type"] == "LoadBalancer"
        applied(kubectl, "scheduling/pod-cuda-vectoradd-smoke.yaml")
        applied(kubectl, "scheduling/pod-toleration-present.yaml")
        wait(kubectl, "pod/gpu-training-job", "condition=ready")
        until(lambda: "5 node(s) had untolerated taint(s)" in why_pending(kubectl, ""))
    finally:
        kubectl("taint", "node", *tainted, "nvidia.com/gpu-")


def test_triton_is_ready_on_ampere_once_its_models_are_there(kubectl: Kubectl) -> None:
    applied(kubectl, "inference/triton-deployment-service.yaml")
    until(lambda: why_pending(kubectl) == missing("model-store-pvc"))
    kubectl("create", "-f-", given=claim("model-store-pvc"))
    rolled_out(kubectl, "deployment/triton-inference")
    families = {
        kubectl.get("node", node)["metadata"]["labels"]["nvidia.com/gpu.family"] for node in nodes_of(pods(kubectl))
    }
    assert (phases(kubectl), families) == (["Running", "Running"], {"ampere"})
    until(lambda: kubectl("get", "endpoints", "triton-inference").count(":800") >= 3)


def test_vllm_waits_for_a_label_that_nobody_set(kubectl: Kubectl) -> None:
    applied(kubectl, "inference/vllm-mistral-7b.yaml")
    until(lambda: why_pending(kubectl) == NO_SUCH_LABEL)
    assert phases(kubectl) == ["Pending", "Pending"]
    kubectl("label", "node", HOPPER, "accelerator=nvidia")
    try:
        rolled_out(kubectl, "deployment/vllm-mistral-7b")
        assert nodes_of(pods(kubectl)) == {HOPPER}
        assert kubectl("get", "hpa", "vllm-hpa").splitlines()[1].split()[-4:-2] == ["2", "10"]
    finally:
        kubectl("label", "node", HOPPER, "accelerator-")


# -- training ---------------------------------------------------------------------------------------------------------

DONE: dict[str, tuple[str, int, str]] = {
    "training/job-distributed-4x2.yaml": ("distributed-training", 4, ""),
    "training/job-pytorch-4gpu-a100.yaml": ("pytorch-training", 1, AMPERE),
    "training/job-pytorch-single-gpu-v100.yaml": ("pytorch-training", 1, VOLTA),
    "scheduling/job-nodeselector-hopper.yaml": ("h100-inference", 1, HOPPER),
    "scheduling/job-affinity-80gb-8gpu.yaml": ("large-model-training", 1, ""),
}
"""The Job, how many of its pods succeed, and on which node if only one will do."""


@pytest.mark.parametrize("path", DONE)
def test_a_training_job_runs_where_it_asks_to_and_completes(kubectl: Kubectl, path: str) -> None:
    name, successes, node = DONE[path]
    kubectl("create", "-f-", given=[claim("training-data-pvc"), claim("model-output-pvc")])
    assert applied(kubectl, path).code == 0
    wait(kubectl, f"job/{name}", "condition=complete")
    assert phases(kubectl) == ["Succeeded"] * successes
    assert nodes_of(pods(kubectl)) == {node} if node else nodes_of(pods(kubectl)) <= {AMPERE, HOPPER, VOLTA}


def test_a_model_by_another_name_is_waited_for_once_the_claim_is_there(kubectl: Kubectl) -> None:
    applied(kubectl, "training/job-pytorch-torchrun-2x4.yaml")
    until(lambda: why_pending(kubectl) == missing("training-data-pvc"))
    kubectl("create", "-f-", given=claim("training-data-pvc"))
    until(lambda: why_pending(kubectl) == NO_SUCH_LABEL)
    assert phases(kubectl) == ["Pending", "Pending"]


def test_a_shared_claim_is_bound_where_its_class_exists(kubectl: Kubectl) -> None:
    applied(kubectl, "training/pvc-cephfs-llama2-dataset.yaml")
    assert kubectl.get("pvc", "llama2-dataset")["status"]["phase"] == "Pending"
    kubectl("create", "-f-", given=storage_class("csi-cephfs-sc", "Immediate"))
    wait(kubectl, "pvc/llama2-dataset", "jsonpath={.status.phase}=Bound")
    assert kubectl.get("pvc", "llama2-dataset")["status"]["capacity"] == {"storage": "5Ti"}


@pytest.mark.parametrize("path", ["training/mpijob-nccl-test.yaml", "training/pytorchjob-llama2.yaml"])
def test_jobs_of_other_projects_are_kept_as_they_are(kubectl: Kubectl, path: str) -> None:
    done = applied(kubectl, path)
    assert (done.code, done.out.endswith(" created\n")) == (0, True)
    kind, name = done.out.split()[0].split("/")
    kept: Obj = kubectl.get(kind, name)
    assert kept["spec"].keys() & {"mpiReplicaSpecs", "pytorchReplicaSpecs"}


# -- sharing ----------------------------------------------------------------------------------------------------------

INSTANCES = {
    "sharing/mig-pod-1g10gb.yaml": ("mig-workload", "cut-0", "1g.10gb"),
    "sharing/mig-pod-bert.yaml": ("bert-inference", "cut-0", "1g.10gb"),
    "sharing/mig-pod-1g5gb-mistral.yaml": ("inference-small", "p4d-24xlarge-0", "1g.5gb"),
}


@pytest.mark.parametrize("path", INSTANCES)
def test_a_pod_takes_one_instance_of_its_profile(kubectl: Kubectl, path: str) -> None:
    name, node, profile = INSTANCES[path]
    applied(kubectl, path)
    wait(kubectl, f"pod/{name}", "condition=ready")
    assert nodes_of(pods(kubectl)) == {node}
    listed = kubectl("exec", name, "--", "nvidia-smi", "-L")
    assert [line.split()[1] for line in listed.splitlines() if line.startswith("  MIG")] == [profile]


def test_a_plain_gpu_pod_runs_on_a_plain_gpu(kubectl: Kubectl) -> None:
    applied(kubectl, "sharing/mps-pod-gke.yaml")
    wait(kubectl, "pod/mps-workload", "condition=ready")
    assert nodes_of(pods(kubectl)) <= {AMPERE, HOPPER, VOLTA}


def test_every_collected_workload_is_in_one_of_the_tests() -> None:
    """A new file wants a line here, or a test."""
    told = Path(__file__).read_text() + Path(__file__).with_name("test_collected_limits.py").read_text()
    folders = ("inference", "training", "sharing", "quota")
    found = [f"{folder}/{path.name}" for folder in folders for path in sorted((COLLECTED / folder).glob("*.yaml"))]
    data = ("fragment-", "clusterpolicy-patches")
    assert [path for path in found if path not in told and not path.split("/")[1].startswith(data)] == []
