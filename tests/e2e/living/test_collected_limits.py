"""Collected manifests of quotas and of sharing, beside controllers and nodes that act on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.collected_manifests import COLLECTED, applied, phases, why_pending
from build.kubectl_runs import Kubectl
from build.living_cluster import ended, events, job, living, namespaces_in, pod, pods, rolled_out, until, wait

pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")

DESK, BOX = "workstation-2x-rtx4090-0", "dgx-a100-80-0"
SERVED, CUT = "nvidia.com/device-plugin.config", "nvidia.com/mig.config"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    nodes = "1xworkstation-2x-rtx4090,1xdgx-a100-80[taint]"
    with living(tmp_path_factory.mktemp("shared"), nodes, "--memory", "--speed", "60") as server:
        yield server


@pytest.fixture(scope="module")
def namespaces(fleet: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(fleet.kubeconfig, kubectl_home))


@pytest.fixture
def kubectl(namespaces: Iterator[Kubectl]) -> Iterator[Kubectl]:
    inside = next(namespaces)
    yield inside
    inside("delete", "deployments,jobs,pods", "--all", "--cascade=foreground", "--grace-period=1")


@pytest.fixture
def operator(kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl where ConfigMaps of GPUs are looked for."""
    inside = kubectl.within("gpu-operator")
    inside.run("create", "namespace", inside.namespace)
    yield inside
    inside("delete", "configmaps", "--all")


def allocatable(kubectl: Kubectl, node: str) -> dict[str, str]:
    """What of NVIDIA the node offers."""
    found = kubectl.get("node", node)["status"]["allocatable"]
    return {
        name.removeprefix("nvidia.com/"): amount for name, amount in found.items() if name.startswith("nvidia.com/")
    }


# -- quotas -----------------------------------------------------------------------------------------------------------

FOUR = ("quota/resourcequota-team-alpha.yaml", "quota/resourcequota-team-ml.yaml")


@pytest.mark.parametrize("path", FOUR)
def test_a_job_has_as_many_pods_as_the_quota_allows_and_the_rest_afterwards(kubectl: Kubectl, path: str) -> None:
    applied(kubectl, path)
    given = job("train", {"run-for": "1000h"}, gpus=2, completions=3, parallelism=3)
    given["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    kubectl("create", "-f-", given=given)
    told = until(lambda: events(kubectl, "train").get("FailedCreate", ""))
    wanted = (
        "exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=4, limited: "
    )
    assert wanted + "requests.nvidia.com/gpu=4" in told
    until(lambda: ended(kubectl, "train"))
    until(lambda: kubectl.get("quota", "gpu-quota")["status"]["used"]["requests.nvidia.com/gpu"] == "0")


def test_the_smaller_quota_of_the_same_name_takes_the_place_of_the_larger(kubectl: Kubectl) -> None:
    applied(kubectl, "quota/resourcequota-ml-team-20gpu.yaml")
    done = applied(kubectl, "quota/resourcequota-ml-team-8gpu.yaml")
    assert done.out == "resourcequota/gpu-quota configured\n"
    hard = {"requests.nvidia.com/gpu": "8", "limits.nvidia.com/gpu": "8", "requests.memory": "256Gi"}
    until(lambda: kubectl.get("quota", "gpu-quota")["status"].get("hard") == {**hard, "requests.cpu": "128"})
    refusal = kubectl.refused("create", "-f-", given=pod("plain", gpus=1))
    assert "failed quota: gpu-quota: must specify requests.cpu for: main; requests.memory for: main" in refusal


def test_a_quota_of_unknown_priorities_counts_nobody(kubectl: Kubectl) -> None:
    applied(kubectl, "quota/resourcequota-team-research-priority-scope.yaml")
    kubectl("create", "-f-", given=pod("plain", gpus=1))
    wait(kubectl, "pod/plain", "condition=ready")
    until(lambda: kubectl.get("quota", "gpu-quota")["status"]["used"]["requests.nvidia.com/gpu"] == "0")


def test_every_container_of_a_deployment_gets_a_gpu_from_the_limit_range(kubectl: Kubectl) -> None:
    applied(kubectl, "quota/limitrange-team-ml.yaml")
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    until(lambda: phases(kubectl) == ["Pending", "Running", "Running"])
    until(lambda: "1 Insufficient nvidia.com/gpu" in why_pending(kubectl))


def test_a_limit_range_with_a_least_refuses_pods_of_a_deployment_and_says_so(kubectl: Kubectl) -> None:
    applied(kubectl, "quota/limitrange-ml-team.yaml")
    small = pod("small", gpus=1)
    small["spec"]["containers"][0]["resources"]["limits"]["memory"] = "1Gi"
    refusal = kubectl.refused("create", "-f-", given=small)
    assert "minimum memory usage per Container is 4Gi, but request is 1Gi" in refusal
    kubectl("create", "-f-", given=pod("plain"))
    assert kubectl.get("pod", "plain")["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


# -- sharing ----------------------------------------------------------------------------------------------------------

TIME_SLICES = (
    "sharing/time-slicing-configmap-replicas4.yaml",
    "sharing/time-slicing-configmap-rename-false.yaml",
    "sharing/time-slicing-configmap-migstrategy-none.yaml",
)


def test_eight_pods_share_two_gpus_once_the_node_offers_each_four_times(kubectl: Kubectl, operator: Kubectl) -> None:
    applied(kubectl, "sharing/time-slicing-deployment-8-replicas.yaml")
    until(lambda: phases(kubectl) == ["Pending"] * 6 + ["Running"] * 2)
    applied(operator, TIME_SLICES[0])
    assert allocatable(kubectl, DESK) == {"gpu": "2"}
    with labelled(kubectl, DESK, f"{SERVED}=any"):
        until(lambda: allocatable(kubectl, DESK) == {"gpu": "8"})
        # Those that had a GPU alone hold more of its memory than a quarter.
        kubectl("delete", "pod", "--all", "--grace-period=1")
        rolled_out(kubectl, "deployment/inference-cluster")
        assert (phases(kubectl), allocatable(kubectl, DESK)) == (["Running"] * 8, {"gpu": "8"})
        labels = kubectl.get("node", DESK)["metadata"]["labels"]
        assert labels["nvidia.com/gpu.product"] == "NVIDIA-GeForce-RTX-4090-SHARED"
        one = pods(kubectl)[0]["metadata"]["name"]
        assert len(kubectl("exec", one, "--", "nvidia-smi", "-L").splitlines()) == 1
    until(lambda: allocatable(kubectl, DESK) == {"gpu": "2"})


@contextmanager
def labelled(kubectl: Kubectl, node: str, label: str) -> Iterator[None]:
    kubectl("label", "node", node, label)
    try:
        yield
    finally:
        kubectl("label", "node", node, f"{label.partition('=')[0]}-")


@pytest.mark.parametrize("path", TIME_SLICES[1:])
def test_other_spellings_of_time_slicing_offer_each_gpu_four_times(operator: Kubectl, path: str) -> None:
    applied(operator, path)
    with labelled(operator, BOX, f"{SERVED}=any"):
        until(lambda: allocatable(operator, BOX) == {"gpu": "32"})
    until(lambda: allocatable(operator, BOX) == {"gpu": "8"})


def test_the_short_form_of_time_slicing_offers_each_gpu_four_times_with_a_warning(operator: Kubectl) -> None:
    inside = operator.within("nvidia-gpu-operator")
    inside.run("create", "namespace", inside.namespace)
    inside("apply", "-f", str(COLLECTED / "sharing/time-slicing-configmap-short-form.yaml"))
    with labelled(operator, BOX, f"{SERVED}=any"):
        until(lambda: allocatable(operator, BOX) == {"gpu": "32"})
        assert "is read as resources: [{name: nvidia.com/gpu, replicas: 4}]" in said(operator)
    inside("delete", "configmaps", "device-plugin-config")
    until(lambda: allocatable(operator, BOX) == {"gpu": "8"})


def test_time_slicing_of_instances_offers_28_of_each_gpu_with_a_warning(operator: Kubectl) -> None:
    """The manifest has no namespace, so that it is created in `default`."""
    inside = operator.within("default")
    inside("apply", "-f", str(COLLECTED / "sharing/mig-plus-time-slicing-configmap.yaml"))
    with labelled(operator, BOX, f"{SERVED}=mig-1g.10gb"):
        until(lambda: allocatable(operator, BOX) == {"gpu": "32"})
        operator("label", "node", BOX, f"{CUT}=all-1g.10gb", "--overwrite")
        until(lambda: allocatable(operator, BOX) == {"gpu": str(8 * 28)})
        assert "not meant for production" in said(operator)
        operator("label", "node", BOX, f"{CUT}=all-disabled", "--overwrite")
        until(lambda: allocatable(operator, BOX) == {"gpu": "32"})
    inside("delete", "configmaps", "device-plugin-config")
    until(lambda: allocatable(operator, BOX) == {"gpu": "8"})


def said(kubectl: Kubectl) -> str:
    """All that happened to the GPUs of the node."""
    found = kubectl.within("default").get("events", f"--field-selector=involvedObject.name={BOX}")["items"]
    return "\n".join(one["message"] for one in found if one["reason"] == "GpuConfigChanged")


def test_a_policy_offers_the_gpus_of_all_nodes_four_times(operator: Kubectl) -> None:
    """Under the group that much copied manifests give it, too."""
    done = applied(operator, "sharing/time-slicing-configmap-nvidia-system.yaml")
    assert (done.code, done.out.count(" created\n")) == (0, 2)
    try:
        until(lambda: (allocatable(operator, BOX), allocatable(operator, DESK)) == ({"gpu": "32"}, {"gpu": "8"}))
    finally:
        operator("delete", "misplacedclusterpolicies", "--all")
    until(lambda: (allocatable(operator, BOX), allocatable(operator, DESK)) == ({"gpu": "8"}, {"gpu": "2"}))


def test_a_layout_of_ones_own_cuts_the_gpus_when_a_label_names_it(operator: Kubectl) -> None:
    applied(operator, "sharing/mig-custom-profile-configmap.yaml")
    operator("label", "node", BOX, f"{CUT}=custom-profile", "--overwrite")
    until(lambda: "MIG layout custom-profile was applied" in said(operator))
    until(lambda: {"mig-1g.10gb": "40", "mig-2g.20gb": "8"}.items() <= allocatable(operator, BOX).items())
    assert allocatable(operator, BOX).get("gpu", "0") == "0"
    operator("label", "node", BOX, f"{CUT}=all-disabled", "--overwrite")
    until(lambda: allocatable(operator, BOX).get("gpu") == "8")


def test_a_layout_for_another_gpu_fails_and_says_so(operator: Kubectl) -> None:
    applied(operator, "sharing/mig-custom-mixed-configmap.yaml")
    operator("label", "node", BOX, f"{CUT}=custom-mixed", "--overwrite")
    until(lambda: cut_state(operator) == "failed")
    until(lambda: "MIG layout custom-mixed was not applied: " in said(operator))
    assert allocatable(operator, BOX).get("gpu") == "8"
    operator("label", "node", BOX, f"{CUT}=all-disabled", "--overwrite")
    until(lambda: cut_state(operator) == "success")


def cut_state(kubectl: Kubectl) -> str:
    return str(kubectl.get("node", BOX)["metadata"]["labels"].get(f"{CUT}.state"))


def test_under_the_strategy_single_a_pod_that_names_a_profile_waits(tmp_path: Path, kubectl_home: Path) -> None:
    with living(tmp_path, "1xdgx-a100-80[mig=all-1g.10gb,strategy=single]", "--memory") as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        applied(kubectl, "sharing/mig-pod-bert.yaml")
        said = "0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb"
        until(lambda: why_pending(kubectl) == said)
        assert allocatable(kubectl, "dgx-a100-80-0") == {"gpu": "56"}
