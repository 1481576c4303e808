"""A new driver version on the three nodes of `shoal up --gpu-software pods`, with `shoal run` for driver upgrades."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.component_pods import pod_template
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import living, namespaces_in, until
from build.shoal_process import shoal_process

_COMPONENTS = ("discovery", "driver", "toolkit", "device-plugin", "feature-discovery", "validator")
_RUN = ("--controllers", "driver-upgrades", "--no-leader-elect", "--metrics-address", "none")
_STATE, _VERSION = "nvidia.com/gpu-driver-upgrade-state", "nvidia.com/cuda.driver-version.full"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    arguments = ("--memory", "--gpu-software", "pods", "--speed", "240")
    with living(tmp_path_factory.mktemp("upgrades"), "3xp5.48xlarge", *arguments) as started:
        yield started


def daemon_set(component: str, image: str) -> Obj:
    template = pod_template(component, image)
    spec = {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
    spec["updateStrategy"] = {"type": "OnDelete"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": component}, "spec": spec}


def nodes(kubectl: Kubectl) -> list[Obj]:
    found: list[Obj] = kubectl.get("nodes")["items"]
    return found


def are_all(kubectl: Kubectl, version: str) -> bool:
    """Whether all nodes run this driver, offer their GPUs and are done."""
    return all(
        one["metadata"]["labels"].get(_VERSION) == version
        and one["metadata"]["labels"].get(_STATE) == "upgrade-done"
        and one["status"]["allocatable"].get("nvidia.com/gpu") == "8"
        for one in nodes(kubectl)
    )


def test_a_new_driver_version_rolls_over_three_nodes_one_at_a_time(server: ServerProcess, kubectl_home: Path) -> None:
    kubectl = next(namespaces_in(Kubectl(server.kubeconfig, kubectl_home)))
    assert not any("nvidia.com/gpu" in one["status"]["allocatable"] for one in nodes(kubectl))
    policy = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": 1}
    objects: list[Obj] = [daemon_set(one, "nvcr.io/nvidia/driver:570.133.20-ubuntu24.04") for one in _COMPONENTS]
    head = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}
    objects.append({**head, "spec": {"driver": {"upgradePolicy": policy}}})
    with shoal_process(server.kubeconfig, "run", *_RUN) as run:
        for one in objects:
            kubectl("create", "-f-", given=one)
        assert run.is_ready(), run.said
        until(lambda: are_all(kubectl, "570.133.20"))
        log = kubectl("logs", "daemonset/driver", "-c", "nvidia-driver-ctr")
        assert "compiling the kernel modules of driver 570.133.20" in log
        kubectl("set", "image", "daemonset/driver", "nvidia-driver-ctr=nvcr.io/nvidia/driver:580.82.07-ubuntu24.04")
        worst = 0

        def is_upgraded() -> bool:
            nonlocal worst
            worst = max(worst, sum(bool(one["spec"].get("unschedulable")) for one in nodes(kubectl)))
            return are_all(kubectl, "580.82.07")

        until(is_upgraded)
        assert worst == 1
        assert run.stop() == 0
        assert "Traceback" not in run.said
    table = kubectl("exec", "daemonset/driver", "-c", "nvidia-driver-ctr", "--", "nvidia-smi")
    assert "Driver Version: 580.82.07" in table
