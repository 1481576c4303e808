"""`kubectl drain` and rollouts where Shoal places the pods: budgets are kept, gangs go elsewhere as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl, Obj
from build.living_cluster import WITHIN, job, living, namespaces_in, nodes_of, pods, rolled_out, until

GPUS = 8
FLAGS = ("--ignore-daemonsets", "--delete-emptydir-data", WITHIN)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with living(tmp_path_factory.mktemp("drained"), "3xp5.48xlarge", "--memory") as started:
        yield started


@pytest.fixture(scope="module")
def all_namespaces(server: ServerProcess, kubectl_home: Path) -> Iterator[Kubectl]:
    return namespaces_in(Kubectl(server.kubeconfig, kubectl_home))


@pytest.fixture
def kubectl(all_namespaces: Iterator[Kubectl]) -> Iterator[Kubectl]:
    """Every node is open, and empty, before and after."""
    inside = next(all_namespaces)
    yield inside
    inside("delete", "deployments,jobs", "--all", "--cascade=foreground")
    for node in inside.names("nodes"):
        inside("uncordon", node.removeprefix("node/"))


def serving(replicas: int, gpus: int) -> Obj:
    container = {"name": "main", "image": "server:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def running(kubectl: Kubectl, number: int) -> list[Obj]:
    """So many, or none yet."""
    found = [one for one in pods(kubectl) if one["status"].get("phase") == "Running"]
    return found if len(found) == number == len(pods(kubectl)) else []


def test_a_drained_service_is_never_below_its_budget(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=serving(4, 2))
    rolled_out(kubectl, "deployment/web")
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--max-unavailable=1")
    until(lambda: kubectl.get("poddisruptionbudget", "web")["status"].get("disruptionsAllowed"))
    for node in sorted(nodes_of(pods(kubectl))):
        kubectl("drain", node, *FLAGS)
        assert node not in nodes_of(pods(kubectl))
    rolled_out(kubectl, "deployment/web")
    assert len(running(kubectl, 4)) == 4


def test_a_gang_that_loses_a_node_runs_whole_again_elsewhere(kubectl: Kubectl) -> None:
    gang = job("train", {"run-for": "1h"}, gpus=4, parallelism=4, completions=4, backoffLimit=100)
    gang["metadata"]["annotations"] = {"shoal.dev/gang": "true"}
    kubectl("create", "-f-", given=gang)
    before = until(lambda: running(kubectl, 4))
    assert len(nodes_of(before)) == 2
    drained = min(nodes_of(before))
    kubectl("drain", drained, *FLAGS)
    after = until(lambda: running(kubectl, 4))
    assert drained not in nodes_of(after)
    stayed = {one["metadata"]["uid"] for one in before} & {one["metadata"]["uid"] for one in after}
    # Those on the other node had no reason to go.
    assert len(stayed) == 2


def test_a_gang_that_has_no_room_elsewhere_waits_and_comes_back(kubectl: Kubectl) -> None:
    whole = job("train", {"run-for": "1h"}, gpus=GPUS, parallelism=3, completions=3, backoffLimit=100)
    whole["metadata"]["annotations"] = {"shoal.dev/gang": "true"}
    kubectl("create", "-f-", given=whole)
    before = until(lambda: running(kubectl, 3))
    drained = min(nodes_of(before))
    kubectl("drain", drained, *FLAGS)
    until(lambda: any("nodeName" not in one["spec"] for one in pods(kubectl)))
    kubectl("uncordon", drained)
    assert len(nodes_of(until(lambda: running(kubectl, 3)))) == 3


def test_a_rollout_on_a_full_fleet_goes_on_as_room_gets_free(kubectl: Kubectl) -> None:
    made = serving(6, 4)
    made["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 2}}
    kubectl("create", "-f-", given=made)
    rolled_out(kubectl, "deployment/web")
    kubectl("set", "image", "deployment/web", "main=server:2")
    assert rolled_out(kubectl, "deployment/web") == 'deployment "web" successfully rolled out'
    images = {one["spec"]["containers"][0]["image"] for one in until(lambda: running(kubectl, 6))}
    assert images == {"server:2"}
