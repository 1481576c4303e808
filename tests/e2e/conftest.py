"""One `shoal up` and one kubectl for all tests of this folder; a namespace for every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl, Obj, namespaces


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    started = ServerProcess(tmp_path_factory.mktemp("e2e"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="package")
def fresh_namespaces(server: ServerProcess, kubectl_home: Path) -> Iterator[str]:
    return namespaces(Kubectl(server.kubeconfig, kubectl_home))


@pytest.fixture
def kubectl(server: ServerProcess, kubectl_home: Path, fresh_namespaces: Iterator[str]) -> Kubectl:
    return Kubectl(server.kubeconfig, kubectl_home, next(fresh_namespaces))


@pytest.fixture
def gpu_node(kubectl: Kubectl) -> Iterator[str]:
    """A ready node with eight GPUs, of the test alone."""
    name = f"node-of-{kubectl.namespace}"
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
    kubectl.client.ask("POST", "/api/v1/nodes", node)
    kubectl.client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    yield name
    kubectl.client.ask("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def bound_pod(kubectl: Kubectl, gpu_node: str) -> Callable[..., str]:
    """Makes pods that are bound to the test's node, each with one GPU, and running."""

    def make(name: str = "trainer", **labels: str) -> str:
        container: Obj = {"name": "main", "image": "cuda:12", "env": [{"name": "RANK", "value": "0"}]}
        container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        spec = {"nodeName": gpu_node, "containers": [container], "terminationGracePeriodSeconds": 0}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        pods = f"/api/v1/namespaces/{kubectl.namespace}/pods"
        kubectl.client.ask("POST", pods, pod)
        ready = {"type": "Ready", "status": "True"}
        state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        container_status = {"name": "main", "ready": True, "restartCount": 0, "image": "cuda:12", "imageID": ""}
        status = {"phase": "Running", "podIP": "10.1.0.7", "conditions": [ready]}
        status["containerStatuses"] = [{**container_status, "state": state}]
        kubectl.client.patch(f"{pods}/{name}/status", {"status": status})
        return name

    return make
