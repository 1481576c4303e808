"""`kubectl rollout`, as far as it goes without controllers: the tests write what a deployment controller would."""

from __future__ import annotations

import subprocess

import pytest

from build.kubectl_runs import PATIENCE_S, Kubectl, Obj

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def web(kubectl: Kubectl) -> str:
    kubectl("create", "deployment", "web", "--image=nginx:2", "--replicas=2")
    return "deployment/web"


def replica_set(kubectl: Kubectl, revision: int) -> Obj:
    """What the controller keeps of one revision, with the image `nginx:<revision>`."""
    owner = kubectl.get("deployment", "web")
    labels = {"app": "web", "pod-template-hash": f"hash{revision}"}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner["metadata"]["uid"]}
    metadata = {
        "name": f"web-hash{revision}",
        "labels": labels,
        "annotations": {REVISION: str(revision), "kubernetes.io/change-cause": f"image {revision}"},
        "ownerReferences": [{**reference, "controller": True}],
    }
    containers = [{"name": "nginx", "image": f"nginx:{revision}"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def counts(generation: int, ready: int) -> Obj:
    numbers = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), ready)
    return {"observedGeneration": generation, **numbers}


def test_status_waits_until_every_replica_is_there(kubectl: Kubectl, web: str) -> None:
    kubectl.set_status(web, counts(1, 1))
    command = kubectl.command("rollout", "status", web, f"--timeout={PATIENCE_S}s")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline().startswith('Waiting for deployment "web" rollout to finish: 1 out of 2')
        kubectl.set_status(web, counts(1, 2))
        assert waiting.stdout.readline() == 'deployment "web" successfully rolled out\n'
        assert waiting.wait(PATIENCE_S) == 0


def test_restart_marks_the_template(kubectl: Kubectl, web: str) -> None:
    assert kubectl("rollout", "restart", web) == "deployment.apps/web restarted\n"
    template = kubectl.get(web)["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]


def test_pause_and_resume(kubectl: Kubectl, web: str) -> None:
    assert kubectl("rollout", "pause", web) == "deployment.apps/web paused\n"
    assert kubectl.get(web)["spec"]["paused"] is True
    assert kubectl.refused("rollout", "pause", web) == 'error: deployments.apps "web" is already paused'
    assert kubectl.refused("rollout", "restart", web).startswith('error: deployments.apps "web" can\'t restart paused')
    assert kubectl("rollout", "resume", web) == "deployment.apps/web resumed\n"
    assert "paused" not in kubectl.get(web)["spec"]


def test_history_lists_revisions_and_undo_goes_back_to_one(kubectl: Kubectl, web: str) -> None:
    kubectl("create", "-f-", given=[replica_set(kubectl, 1), replica_set(kubectl, 2)])
    kubectl("annotate", web, f"{REVISION}=2")
    listed = [line.split(None, 1) for line in kubectl("rollout", "history", web).splitlines() if line[:1].isdigit()]
    assert listed == [["1", "image 1"], ["2", "image 2"]]
    assert "nginx:1" in kubectl("rollout", "history", web, "--revision=1")
    assert kubectl("rollout", "undo", web, "--to-revision=1") == "deployment.apps/web rolled back\n"
    assert kubectl.get(web)["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"
    refusal = kubectl.refused("rollout", "undo", web, "--to-revision=7")
    assert refusal == "error: unable to find specified revision 7 in history"


def test_a_daemon_set_keeps_its_history_in_revisions(kubectl: Kubectl) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    kubectl(
        "create", "-f-", given={"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec}
    )
    uid = kubectl.get("daemonset", "d")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": uid, "controller": True}
    metadata = {"name": "d-1", "labels": {"a": "b"}, "ownerReferences": [owner]}
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    revision = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "revision": 1,
        "data": data,
    }
    kubectl("create", "-f-", given=revision)
    assert kubectl("rollout", "history", "daemonset/d").strip().splitlines()[-1].split() == ["1", "<none>"]
    assert "Image:\tx" in kubectl("rollout", "history", "daemonset/d", "--revision=1")
    assert kubectl("rollout", "undo", "daemonset/d", "--to-revision=1") == "daemonset.apps/d rolled back\n"
