"""Deployments, StatefulSets and DaemonSets as their users roll them out: by kubectl, against controllers and nodes."""

from __future__ import annotations

import subprocess
from itertools import pairwise

from build.kubectl_runs import PATIENCE_S, Kubectl, Obj
from build.living_cluster import nodes_of, pods, rolled_out, uids, until, wait


def images(kubectl: Kubectl) -> set[str]:
    return {one["spec"]["containers"][0]["image"] for one in pods(kubectl, "app=web")}


def revisions(kubectl: Kubectl) -> list[str]:
    listed = kubectl("rollout", "history", "deployment/web").splitlines()
    return [line.split()[0] for line in listed if line[:1].isdigit()]


def web(kubectl: Kubectl, replicas: int) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", f"--replicas={replicas}")
    assert rolled_out(kubectl, "deployment/web") == 'deployment "web" successfully rolled out'


def test_a_new_image_rolls_out_and_is_undone(kubectl: Kubectl) -> None:
    web(kubectl, 3)
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    rolled_out(kubectl, "deployment/web")
    assert (images(kubectl), revisions(kubectl)) == ({"nginx:2"}, ["1", "2"])
    assert "Image:\tnginx:1" in kubectl("rollout", "history", "deployment/web", "--revision=1")
    kubectl("rollout", "undo", "deployment/web")
    rolled_out(kubectl, "deployment/web")
    assert (images(kubectl), revisions(kubectl)) == ({"nginx:1"}, ["2", "3"])
    assert len(kubectl.names("replicasets")) == 2
    assert "Scaled up replica set" in kubectl("describe", "deployment/web")


def test_a_paused_rollout_waits_and_goes_on_when_resumed(kubectl: Kubectl) -> None:
    web(kubectl, 2)
    kubectl("rollout", "pause", "deployment/web")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("scale", "deployment/web", "--replicas=4")
    wait(kubectl, "deployment/web", "jsonpath={.status.readyReplicas}=4")
    assert images(kubectl) == {"nginx:1"}
    kubectl("rollout", "resume", "deployment/web")
    rolled_out(kubectl, "deployment/web")
    assert (images(kubectl), len(pods(kubectl))) == ({"nginx:2"}, 4)


def test_a_restart_replaces_every_pod_by_one_of_the_same_kind(kubectl: Kubectl) -> None:
    web(kubectl, 3)
    before = uids(pods(kubectl))
    kubectl("rollout", "restart", "deployment/web")
    rolled_out(kubectl, "deployment/web")
    after = uids(pods(kubectl))
    assert (len(before), len(after), before.keys() & after.keys(), images(kubectl)) == (3, 3, set(), {"nginx:1"})


def addresses(kubectl: Kubectl) -> set[str]:
    """Of the Service's endpoints that are ready."""
    slices = kubectl.get("endpointslices", "--selector=kubernetes.io/service-name=web")["items"]
    found = [one for piece in slices for one in piece.get("endpoints") or ()]
    return {address for one in found if one["conditions"]["ready"] for address in one["addresses"]}


def test_a_service_has_the_addresses_of_the_pods_behind_it_and_no_others(kubectl: Kubectl) -> None:
    web(kubectl, 2)
    kubectl("expose", "deployment/web", "--port=80")
    until(lambda: addresses(kubectl) == {one["status"]["podIP"] for one in pods(kubectl)})
    kubectl("scale", "deployment/web", "--replicas=5")
    rolled_out(kubectl, "deployment/web")
    until(lambda: len(addresses(kubectl)) == 5)
    assert addresses(kubectl) == {one["status"]["podIP"] for one in pods(kubectl)}
    until(lambda: ":80 + 2 more..." in kubectl("get", "endpoints", "web"))
    kubectl("scale", "deployment/web", "--replicas=0")
    wait(kubectl, "pod", "delete", "--selector=app=web")
    until(lambda: not addresses(kubectl))


def stateful_set(ready_after: str = "0s") -> list[Obj]:
    labels = {"app": "db"}
    container = {"name": "db", "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {
        "metadata": {"labels": labels, "annotations": {"shoal.dev/ready-after": ready_after}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    }
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    spec = {
        "serviceName": "db",
        "replicas": 3,
        "selector": {"matchLabels": labels},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec}],
    }
    headless = {"clusterIP": "None", "selector": labels, "ports": [{"port": 5432}]}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": headless},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec},
    ]


def ready_since(one: Obj) -> str:
    return str(next(c["lastTransitionTime"] for c in one["status"]["conditions"] if c["type"] == "Ready"))


def test_a_stateful_set_starts_one_pod_after_the_other_and_keeps_their_claims(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=stateful_set("1s"))
    rolled_out(kubectl, "statefulset/db")
    found = pods(kubectl, "app=db")
    assert [one["metadata"]["name"] for one in found] == ["db-0", "db-1", "db-2"]
    for earlier, later in pairwise(found):
        assert ready_since(earlier) <= later["metadata"]["creationTimestamp"]
    assert found[0]["metadata"]["creationTimestamp"] < found[2]["metadata"]["creationTimestamp"]
    claims = dict.fromkeys(("data-db-0", "data-db-1", "data-db-2"), "Bound")
    listed = kubectl.get("persistentvolumeclaims")["items"]
    assert {one["metadata"]["name"]: one["status"]["phase"] for one in listed} == claims
    gone = deleted_while(kubectl, "scale", "statefulset/db", "--replicas=1")
    assert gone == ["db-2", "db-1"]
    assert len(kubectl.names("persistentvolumeclaims")) == 3


def deleted_while(kubectl: Kubectl, *arguments: str) -> list[str]:
    """The first two pods that a watch sees go, in their order."""
    columns = "custom-columns=TYPE:.type,NAME:.object.metadata.name"
    command = kubectl.command("get", "pods", "--watch", "--output-watch-events", "--no-headers", "-o", columns)
    gone: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as watching:
        assert watching.stdout is not None
        for _ in range(3):
            watching.stdout.readline()
        kubectl(*arguments)
        for line in watching.stdout:
            type_, name = line.split()[:2]
            gone += [name] if type_ == "DELETED" else []
            if len(gone) == 2:
                break
        watching.terminate()
        watching.wait(PATIENCE_S)
    return gone


def test_a_daemon_set_has_a_pod_on_each_node_with_gpus_and_follows_labels(kubectl: Kubectl) -> None:
    labels = {"app": "exporter"}
    chosen = {"nodeSelector": {"nvidia.com/gpu.present": "true"}, "containers": [{"name": "dcgm", "image": "dcgm:4"}]}
    template = {"metadata": {"labels": labels}, "spec": chosen}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "exporter"}, "spec": spec}
    kubectl("create", "-f-", given=made)
    assert rolled_out(kubectl, "daemonset/exporter") == 'daemon set "exporter" successfully rolled out'
    assert nodes_of(pods(kubectl)) == {"p5-48xlarge-0", "p5-48xlarge-1"}
    kubectl("label", "node", "cpu-64-0", "nvidia.com/gpu.present=true")
    wait(kubectl, "daemonset/exporter", "jsonpath={.status.numberReady}=3")
    kubectl("label", "node", "cpu-64-0", "nvidia.com/gpu.present-")
    wait(kubectl, "daemonset/exporter", "jsonpath={.status.desiredNumberScheduled}=2")
    until(lambda: nodes_of(pods(kubectl)) == {"p5-48xlarge-0", "p5-48xlarge-1"})
