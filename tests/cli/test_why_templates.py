"""Remedies of `shoal why` that change the template of a controller: what happens to the pods that exist."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, group, job, node, pod, replicas
from shoal.cli.main import main
from shoal.embedded.apiserver.patches.json_patch import json_patch

GROUP = "scheduling.x-k8s.io/pod-group"
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


# -- tolerations: each printed patch can be applied to its object ------------------------------------------------------

_BY_DEFAULT: list[Object] = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
"""Which the API server adds to each pod, and to no template."""


def kept_off(kind: str, *, in_template: bool) -> list[Object]:
    """A tainted node, and a pod that waits for it; of `Pod` the pod has no controller."""
    kept: list[Object] = [{"key": "spot", "operator": "Exists"}] if in_template else []
    waiting = of_cluster(pod("t/web-0", 1, status={"phase": "Pending"}, tolerations=[*kept, *_BY_DEFAULT]))
    objects = [of_cluster(node("n", 8, spec={"taints": [TAINT]})), waiting]
    if kind == "Pod":
        return objects
    controller = of_cluster(job("t/web", 1, 1) if kind == "Job" else replicas(kind, "t/web", 1, 1))
    if kept:
        controller["spec"]["template"]["spec"]["tolerations"] = kept
    if kind == "Deployment":
        objects.append(owned(of_cluster(replicas("ReplicaSet", "t/web-5d", 1, 1)), "Deployment", "web"))
        owned(waiting, "ReplicaSet", "web-5d")
    else:
        owned(waiting, kind, "web")
    return [*objects, controller]


def patched(objects: list[Object], commands: list[str]) -> list[Object]:
    """The objects after the patches of these commands, each by itself as a server applies it."""
    by_name = {(each["kind"].lower(), each["metadata"]["name"]): each for each in objects}
    for command in commands:
        words = shlex.split(command)
        if words[1] == "patch":
            body = json.loads(next(word for word in words if word.startswith("-p=")).removeprefix("-p="))
            by_name[words[2], words[3]] = json_patch(by_name[words[2], words[3]], body)
    return list(by_name.values())


@pytest.mark.parametrize("in_template", [False, True])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "Pod"])
def test_a_printed_toleration_can_be_added_to_the_object_it_is_for(
    remedies: Remedies, kind: str, in_template: bool
) -> None:
    objects = kept_off(kind, in_template=in_template)
    (remedy,) = remedies("pod/web-0", *objects)
    after = {each["kind"]: each for each in patched(objects, remedy["commands"])}
    # The template of a Job cannot be changed, so its pods get the toleration.
    changed = after["Pod" if kind in ("Pod", "Job") else kind]["spec"]
    spec = changed.get("template", {}).get("spec", changed)
    before: list[Object] = [{"key": "spot", "operator": "Exists"}] if in_template else []
    before += _BY_DEFAULT if kind in ("Pod", "Job") else []
    added = {"key": "dedicated", "operator": "Equal", "value": "research", "effect": "NoSchedule"}
    assert spec["tolerations"] == [*before, added]


@pytest.mark.parametrize("kind", ["StatefulSet", "Pod"])
def test_two_printed_tolerations_keep_each_other(remedies: Remedies, kind: str) -> None:
    """The pods of a gang need two nodes, each with a taint of its own."""
    objects = []
    for at, team in enumerate(("research", "sales")):
        objects.append(of_cluster(node(f"n{at}", 8, spec={"taints": [TAINT | {"value": team}]})))
        one = of_cluster(pod(f"t/web-{at}", 8, status={"phase": "Pending"}, tolerations=_BY_DEFAULT))
        one["metadata"]["labels"] = {GROUP: "web"}
        objects.append(owned(one, kind, "web") if kind != "Pod" else one)
    if kind != "Pod":
        objects.append(of_cluster(replicas(kind, "t/web", 2, 8)))
    objects.append(of_cluster(group("scheduling.x-k8s.io/v1alpha1", "t/web", minMember=2)))
    (remedy,) = remedies("gang/web", *objects)
    after = [each for each in patched(objects, remedy["commands"]) if each["kind"] == kind]
    for each in after:
        spec = each["spec"].get("template", {}).get("spec", each["spec"])
        values = {toleration.get("value") for toleration in spec["tolerations"]}
        assert values >= {"research", "sales"}
