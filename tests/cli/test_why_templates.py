"""Remedies of `shoal why` that change the template of a controller: what happens to the pods that exist."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, node, pod, replicas
from shoal.cli.main import main

TAINT = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}
Remedies = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def remedies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Remedies:
    def found(name: str, *objects: Object) -> list[dict[str, Any]]:
        assert main(["why", "-f", as_file(tmp_path, *objects), name, "-o", "json"]) == 0
        answer: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["remedies"]
        return answer

    return found


def of_cluster(obj: Object) -> Object:
    obj["metadata"]["uid"] = f"uid-{obj['metadata']['name']}"
    return obj


def owned(obj: Object, kind: str, name: str) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


def made_by(kind: str, *above: Object) -> list[Object]:
    """A controller and its pod, which waits for a taint; `above`: the controller of the controller."""
    controller = of_cluster(replicas(kind, "t/web", 1, 1))
    if above:
        controller = owned(controller, "Deployment", above[0]["metadata"]["name"])
    waiting = of_cluster(owned(pod("t/web-0", 1, status={"phase": "Pending"}), kind, "web"))
    return [of_cluster(node("n", 8, spec={"taints": [TAINT]})), controller, waiting, *above]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_a_pod_is_deleted_where_its_controller_does_not_replace_it(remedies: Remedies, kind: str) -> None:
    (remedy,) = remedies("pod/web-0", *made_by(kind))
    patch, delete = remedy["commands"]
    assert patch.startswith(f"kubectl patch {kind.lower()} web -n t --type=json")
    assert delete == "kubectl delete pod web-0 -n t"
    assert remedy["words"].endswith(
        f"After that, delete pod t/web-0, which {kind.lower()} t/web creates again from its template."
    )


@pytest.mark.parametrize(("strategy", "verbs"), [("RollingUpdate", ["patch"]), ("OnDelete", ["patch", "delete"])])
def test_a_pod_of_a_daemonset_is_deleted_with_the_strategy_that_waits_for_it(
    remedies: Remedies, strategy: str, verbs: list[str]
) -> None:
    tainted, daemons, waiting = made_by("DaemonSet")
    del daemons["spec"]["replicas"]
    daemons["spec"]["updateStrategy"] = {"type": strategy}
    (remedy,) = remedies("pod/web-0", tainted, daemons, waiting)
    assert [command.split()[1] for command in remedy["commands"]] == verbs


def test_the_deployment_of_a_replicaset_is_patched_and_replaces_the_pod_itself(remedies: Remedies) -> None:
    deployment = of_cluster(replicas("Deployment", "t/front", 1, 1))
    (remedy,) = remedies("pod/web-0", *made_by("ReplicaSet", deployment))
    (patch,) = remedy["commands"]
    assert patch.startswith("kubectl patch deployment front -n t --type=json")
    assert "delete" not in remedy["words"]


def test_a_pod_that_two_changes_concern_is_deleted_after_both(remedies: Remedies) -> None:
    tainted, controller, waiting = made_by("ReplicaSet")
    tainted["metadata"]["labels"] = {"pool": "gpu"}
    for spec in (controller["spec"]["template"]["spec"], waiting["spec"]):
        spec["nodeSelector"] = {"pol": "gpu"}
    (remedy,) = remedies("pod/web-0", tainted, controller, waiting)
    assert [command.split()[1] for command in remedy["commands"]] == ["patch", "patch", "delete"]
