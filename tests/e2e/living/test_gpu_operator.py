"""`shoal run --controllers operator` beside `shoal up`: the components of a ClusterPolicy run on simulated nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.kubectl_runs import Kubectl
from build.living_cluster import events, living, until, wait
from build.shoal_process import ShoalProcess

SPACE, POLICY = "gpu-operator", "clusterpolicy/cluster-policy"
APPS = (
    *("nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset", "nvidia-device-plugin-daemonset"),
    *("nvidia-dcgm-exporter", "gpu-feature-discovery", "nvidia-mig-manager", "nvidia-operator-validator"),
)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory, kubectl_home: Path) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("operated")
    with living(folder, "2xp5.48xlarge,1xcpu-64", "--memory", "--speed", "10") as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home).within(SPACE)
        kubectl.client.create_namespace(SPACE)
        options = ("--operator-namespace", SPACE, "--metrics-address", "none", "--no-leader-elect")
        process = ShoalProcess(server.kubeconfig, "run", "--controllers", "operator", *options)
        try:
            assert process.is_ready(), process.said
            yield kubectl
        finally:
            process.stop()
        assert "Traceback" not in process.said, process.said


def _policy(spec: dict[str, object] | None = None) -> dict[str, object]:
    kind = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy"}
    return {**kind, "metadata": {"name": "cluster-policy"}, "spec": spec or {}}


def _image(kubectl: Kubectl, name: str) -> str:
    path = "jsonpath={.spec.template.spec.containers[0].image}"
    return kubectl("get", f"daemonset/{name}", "-o", path)


def test_a_policy_is_installed_kept_changed_and_removed(kubectl: Kubectl) -> None:
    kubectl("apply", "-f-", given=[_policy()])
    wait(kubectl, POLICY, "condition=Ready")
    assert kubectl("get", POLICY, "-o", "jsonpath={.status.state}") == "ready"
    for app in APPS:
        pods = kubectl.get("pods", "-l", f"app={app}")["items"]
        nodes = sorted(one["spec"]["nodeName"] for one in pods)
        assert nodes == ["p5-48xlarge-0", "p5-48xlarge-1"], app
    # Drift is corrected.
    kubectl("delete", "daemonset/nvidia-dcgm-exporter")
    until(lambda: "nvidia-dcgm-exporter" in kubectl("get", "daemonset", "-o", "name"))
    before = _image(kubectl, "gpu-feature-discovery")
    kubectl("set", "image", "daemonset/gpu-feature-discovery", "gpu-feature-discovery=other")
    until(lambda: _image(kubectl, "gpu-feature-discovery") == before)
    # A merge patch and a JSON patch, with and without a namespace, as guides have them.
    kubectl("patch", POLICY, "--type=merge", "-p", '{"spec": {"devicePlugin": {"config": {"name": "sharing"}}}}')
    path = [{"op": "add", "path": "/spec/migManager", "value": {"config": {"name": "layouts"}}}]
    kubectl("patch", "clusterpolicies.nvidia.com/cluster-policy", "--type=json", "-p", json.dumps(path))
    until(lambda: "sharing" in kubectl("get", "daemonset/nvidia-device-plugin-daemonset", "-o", "json"))
    until(lambda: "layouts" in kubectl("get", "daemonset/nvidia-mig-manager", "-o", "json"))
    until(lambda: "ConfigMapNotFound" in events(kubectl.within("default"), "cluster-policy"))
    # The stages of a node are an annotation.
    wait(kubectl, POLICY, "condition=Ready")
    note = r"jsonpath={.metadata.annotations.shoal\.dev/gpu-stages}"
    stages = until(lambda: _all_ready(kubectl("get", "node/p5-48xlarge-0", "-o", note)))
    assert {"driver", "container-toolkit", "device-plugin", "validator"} <= stages["times"].keys()
    assert kubectl("get", "node/cpu-64-0", "-o", note) == ""
    kubectl("delete", POLICY)
    until(lambda: kubectl("get", "daemonset,serviceaccount", "-o", "name").split() == ["serviceaccount/default"])
    until(lambda: kubectl("get", "node/p5-48xlarge-0", "-o", note) == "")


def _all_ready(text: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(text or "{}")
    return found if found and "layer" not in found else {}
