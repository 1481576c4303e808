"""`shoal install` on a cluster whose nodes have no GPU software: the operator brings it, a pod with a GPU succeeds, and
`shoal uninstall` takes it away while running pods stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl
from build.shoal_process import shoal_process
from shoal.cli.main import main

pytestmark = pytest.mark.slow
NAMESPACE = "gpu-operator"


@pytest.fixture(scope="module")
def bare_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("installation")
    started = ServerProcess(
        folder, "--nodes", "2xdgx-a100-80", "--gpu-software", "pods", "--speed", "20", is_bare=False
    )
    yield started
    started.stop()


def test_from_nodes_without_software_to_a_pod_with_a_gpu_and_back(
    bare_nodes: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = str(bare_nodes.kubeconfig)
    kubectl = Kubectl(bare_nodes.kubeconfig, tmp_path)
    operator = ("run", "--controllers", "operator", "--operator-namespace", NAMESPACE, "--no-leader-elect")
    with shoal_process(bare_nodes.kubeconfig, *operator, "--metrics-address", "none") as process:
        assert process.is_ready()
        code = main(["install", "-n", NAMESPACE, "--timeout", "300s", "--kubeconfig", kubeconfig])
        told = capsys.readouterr().err
        assert code == 0, told
        assert "smoke test: vectorAdd passed on node dgx-a100-80-" in told

        assert main(["status", "-o", "json", "--kubeconfig", kubeconfig]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["policy"], found["problem"]) == ("ready", "")
        assert {one["state"] for one in found["nodes"]} == {"ready"}
        assert {"scheduler", "operator", "driver", "device plugin"} <= {one["component"] for one in found["components"]}

        rehearsed = ("upgrade", "--set", "replicas=3", "--rehearse", "--kubeconfig", kubeconfig)
        assert main(rehearsed) == 0
        out = capsys.readouterr().out
        assert "~ Deployment gpu-operator/shoal\n    spec.replicas: 2 -> 3\n" in out
        assert out.endswith("the upgrade would be carried out; nothing was changed\n")
        refused = ("upgrade", "--set", "labels.team=not valid!", "--rehearse", "--kubeconfig", kubeconfig)
        assert main(refused) == 1
        assert "would fail: " in capsys.readouterr().err

        container = {"name": "c", "image": "cuda:12", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "stays", "namespace": "default"},
            "spec": {"schedulerName": "shoal", "containers": [container]},
        }
        assert kubectl.run("apply", "-f-", given=json.dumps(pod)).code == 0
        ready = ("wait", "--for=condition=Ready", "pod/stays", "-n", "default", "--timeout=60s")
        assert kubectl.run(*ready).code == 0
        assert main(["uninstall", "--kubeconfig", kubeconfig]) == 0
        capsys.readouterr()

        phase = kubectl.run("get", "pod", "stays", "-n", "default", "-o", "jsonpath={.status.phase}")
        assert phase.out == "Running"
        assert kubectl.run("get", "namespace", NAMESPACE).code == 1
        assert "clusterpolicy" not in kubectl.run("get", "clusterpolicies", "-o", "name").out
