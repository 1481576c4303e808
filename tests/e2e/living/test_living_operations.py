"""What operators do to a living cluster by kubectl: drain, delete, end namespaces; look into pods and nodes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from build.kubectl_runs import PATIENCE_S, Kubectl, Obj
from build.living_cluster import (
    conditions,
    events,
    nodes_of,
    patch,
    pod,
    pods,
    rolled_out,
    shoal,
    tell,
    uids,
    until,
    wait,
)

FIRST, SECOND, PLAIN = "p5-48xlarge-0", "p5-48xlarge-1", "cpu-64-0"


@pytest.fixture
def web(kubectl: Kubectl) -> Iterator[str]:
    """Two pods on the first node, and no node closed to pods afterwards."""
    kubectl("cordon", SECOND, PLAIN)
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    rolled_out(kubectl, "deployment/web")
    kubectl("uncordon", SECOND, PLAIN)
    until(lambda: not strangers(kubectl, FIRST))
    yield FIRST
    kubectl("uncordon", FIRST, SECOND, PLAIN)


def strangers(kubectl: Kubectl, node: str) -> list[Obj]:
    """Pods of tests before this one that have not ended yet."""
    found = kubectl.get("pods", "--all-namespaces", f"--field-selector=spec.nodeName={node}")["items"]
    return [one for one in found if one["metadata"]["namespace"] != kubectl.namespace]


# -- drains -----------------------------------------------------------------------------------------------------------


def test_a_cordoned_node_gets_no_new_pods(kubectl: Kubectl) -> None:
    kubectl("cordon", FIRST, SECOND)
    try:
        kubectl("create", "-f-", given=pod("trainer", gpus=1))
        wait(kubectl, "pod/trainer", "jsonpath={.status.conditions[0].reason}=Unschedulable")
        said = conditions(kubectl.get("pod", "trainer"))["PodScheduled"]["message"]
        assert said.startswith("0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) were unschedulable.")
    finally:
        kubectl("uncordon", FIRST, SECOND)
    wait(kubectl, "pod/trainer", "condition=ready")


def test_a_drain_waits_until_a_budget_allows_it_to_go_on(kubectl: Kubectl, web: str) -> None:
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
    wait(kubectl, "poddisruptionbudget/web", "jsonpath={.status.disruptionsAllowed}=1")
    kubectl("cordon", SECOND, PLAIN)
    command = kubectl.command("drain", web, "--force")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=kubectl.environment()) as draining:
        assert draining.stderr is not None
        refusal = "Cannot evict pod as it would violate the pod's disruption budget."
        assert any(refusal in line for line in draining.stderr)
        kubectl("uncordon", SECOND, PLAIN)
        draining.stderr.read()
        assert draining.wait(PATIENCE_S) == 0
    rolled_out(kubectl, "deployment/web")
    assert web not in nodes_of(pods(kubectl))


def test_shoal_drains_a_node_as_kubectl_does(kubectl: Kubectl, web: str) -> None:
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--max-unavailable=0")
    wait(kubectl, "poddisruptionbudget/web", "jsonpath={.status.expectedPods}=2")
    refused = shoal("cluster", "drain", web, "--timeout", "1", kubeconfig=kubectl.kubeconfig)
    assert (refused.code, refused.out) == (1, "")
    names = [one["metadata"]["name"] for one in pods(kubectl)]
    told = [f"shoal: {kubectl.namespace}/{name} is still there: Cannot evict pod" for name in names]
    assert [words for words in told if words not in refused.err] == []
    kubectl("delete", "poddisruptionbudget", "web")
    done = shoal("cluster", "drain", web, kubeconfig=kubectl.kubeconfig)
    assert (done.code, done.out) == (0, f"node {web} is drained\n")
    rolled_out(kubectl, "deployment/web")
    assert web not in nodes_of(pods(kubectl))


def test_a_pod_without_a_controller_needs_force(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=pod("alone", nodeName=PLAIN, terminationGracePeriodSeconds=0))
    wait(kubectl, "pod/alone", "condition=ready")
    until(lambda: not strangers(kubectl, PLAIN))
    try:
        refused = shoal("cluster", "drain", PLAIN, kubeconfig=kubectl.kubeconfig)
        assert (refused.code, refused.err.splitlines()[-1]) == (
            2,
            f"shoal: no controller would make {kubectl.namespace}/alone again; evict them nevertheless with --force",
        )
        assert shoal("cluster", "drain", PLAIN, "--force", kubeconfig=kubectl.kubeconfig).code == 0
        assert pods(kubectl) == []
    finally:
        kubectl("uncordon", PLAIN)


# -- deletion ---------------------------------------------------------------------------------------------------------


def test_background_deletion_takes_what_was_owned_along(kubectl: Kubectl, web: str) -> None:
    kubectl("delete", "deployment", "web")
    wait(kubectl, "replicaset --all", "delete")
    wait(kubectl, "pod --all", "delete")


def test_foreground_deletion_ends_with_the_owner(kubectl: Kubectl, web: str) -> None:
    kubectl("delete", "deployment", "web", "--cascade=foreground")
    assert kubectl.names("deployments,replicasets,pods") == []


def test_orphans_live_on_and_are_adopted_by_the_next_owner(kubectl: Kubectl, web: str) -> None:
    before = uids(pods(kubectl))
    kubectl("delete", "deployment", "web", "--cascade=orphan")
    replica_set = kubectl.names("replicasets")
    assert (uids(pods(kubectl)), len(replica_set)) == (before, 1)
    assert "ownerReferences" not in kubectl.get(*replica_set)["metadata"]
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    rolled_out(kubectl, "deployment/web")
    assert (uids(pods(kubectl)), kubectl.names("replicasets")) == (before, replica_set)


def test_a_namespace_that_cannot_end_says_why_and_ends_when_it_can(kubectl: Kubectl, web: str) -> None:
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    kubectl("create", "-f-", given={"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    name = kubectl.namespace
    kubectl("delete", "namespace", name, "--wait=false")
    wait(kubectl, "pod --all", "delete")
    wait(kubectl, f"namespace/{name}", "condition=NamespaceFinalizersRemaining")
    # What goes by itself may be counted at first.
    remaining = "Some resources are remaining: configmaps. has 1 resource instances"
    until(lambda: _said(kubectl, name, "NamespaceContentRemaining") == remaining)
    assert _said(kubectl, name, "NamespaceFinalizersRemaining") == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    refusal = kubectl.refused("create", "configmap", "late")
    assert refusal.endswith(f"unable to create new content in namespace {name} because it is being terminated")
    kubectl("patch", "configmap/held", "--type=merge", "--patch", patch({"metadata": {"finalizers": None}}))
    wait(kubectl, f"namespace/{name}", "delete")


def _said(kubectl: Kubectl, namespace: str, condition: str) -> str:
    found: Obj = conditions(kubectl.get("namespace", namespace)).get(condition, {})
    return str(found.get("message", ""))


# -- looking ----------------------------------------------------------------------------------------------------------


def test_a_log_is_followed_until_the_program_ends(kubectl: Kubectl) -> None:
    annotations = {"run-for": "1h", "log": "step 1\nstep 2"}
    kubectl("create", "-f-", given=pod("trainer", annotations, restartPolicy="Never"))
    wait(kubectl, "pod/trainer", "condition=ready")
    command = kubectl.command("logs", "--follow", "trainer")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as following:
        assert following.stdout is not None
        while "step 2" not in (line := following.stdout.readline()):
            assert line, "it was not followed"
        assert following.poll() is None
        tell(kubectl, "pod/trainer", "run-for=1ms")
        rest, _ = following.communicate(timeout=PATIENCE_S)
    assert (following.returncode, rest) == (0, "")
    wait(kubectl, "pod/trainer", "jsonpath={.status.phase}=Succeeded")
    assert kubectl("logs", "trainer", "--tail=1") == "step 2\n"


def test_the_log_of_the_life_before_is_kept(kubectl: Kubectl) -> None:
    crashing = pod("crashing", {"run-for": "1h", "exit-code": "7", "log": "out of memory"})
    kubectl("create", "-f-", given=crashing)
    refusal = kubectl.refused("logs", "crashing", "--previous")
    assert "crashing" in refusal
    tell(kubectl, "pod/crashing", "run-for=200ms")
    wait(kubectl, "pod/crashing", "jsonpath={.status.containerStatuses[0].restartCount}=1")
    assert "out of memory" in kubectl("logs", "crashing", "--previous")
    wait(kubectl, "pod/crashing", "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff")
    assert "CrashLoopBackOff" in kubectl("get", "pod", "crashing")
    assert events(kubectl, "crashing")["BackOff"].startswith("Back-off restarting failed container main in pod")


def test_a_pod_sees_its_own_gpus_and_no_others(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=[pod("one", gpus=1), pod("two", gpus=2), pod("none")])
    wait(kubectl, "pod/one pod/two pod/none", "condition=ready")
    listed = {name: kubectl("exec", name, "--", "nvidia-smi", "-L").splitlines() for name in ("one", "two")}
    assert [len(lines) for lines in listed.values()] == [1, 2]
    assert all(line.startswith(f"GPU {place}: NVIDIA H100") for place, line in enumerate(listed["two"]))
    seen = {line.split("UUID: ")[1] for lines in listed.values() for line in lines}
    assert len(seen) == 3
    assert "python3" in kubectl("exec", "one", "--", "nvidia-smi")
    without = kubectl.run("exec", "none", "--", "nvidia-smi")
    assert (without.code, "nvidia-smi: not found: this container asks for no GPU" in without.err) == (127, True)


def test_top_shows_every_node_and_the_running_pods(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=pod("busy", gpus=1))
    wait(kubectl, "pod/busy", "condition=ready")
    heads, *nodes = kubectl("top", "node").splitlines()
    assert heads.split() == ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]
    assert {line.split()[0] for line in nodes} == {FIRST, SECOND, PLAIN}
    name, cores, memory = until(lambda: kubectl.run("top", "pod", "--no-headers").out.split())
    assert (name, cores.endswith("m"), memory.endswith("Mi")) == ("busy", True, True)


def test_describe_tells_a_person_what_happened_to_a_pod(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=[pod("fits", gpus=1), pod("large", gpus=9)])
    wait(kubectl, "pod/fits", "condition=ready")
    told = until(lambda: text if "Started" in (text := kubectl("describe", "pod", "fits")) else "")
    assert [words for words in ("Status:           Running", "Successfully assigned") if words not in told] == []
    waiting = until(lambda: text if "FailedScheduling" in (text := kubectl("describe", "pod", "large")) else "")
    assert "0/3 nodes are available: 3 Insufficient nvidia.com/gpu." in waiting


def test_describe_tells_what_a_node_is_and_holds(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=pod("resident", gpus=3, nodeSelector={"kubernetes.io/hostname": FIRST}))
    wait(kubectl, "pod/resident", "condition=ready")
    told = kubectl("describe", "node", FIRST)
    wanted = ("nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3", "KubeletReady", "resident")
    assert [words for words in wanted if words not in told] == []
    allocated = next(line.split() for line in told.splitlines() if line.split()[:1] == ["nvidia.com/gpu"])
    assert int(allocated[1]) >= 3


def test_an_annotation_that_cannot_be_read_is_told_and_not_used(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=pod("odd", {"run-for": "soon"}, restartPolicy="Never"))
    wait(kubectl, "pod/odd", "condition=ready")
    told = until(lambda: events(kubectl, "odd").get("InvalidAnnotation", ""))
    assert told == 'shoal.dev/run-for: "soon" is not a duration such as 90s, 1m30s or 2h; the default is used'
    assert kubectl.get("pod", "odd")["status"]["phase"] == "Running"
