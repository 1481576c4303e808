"""`kubectl delete` in its ways, and `kubectl wait`, which lives on a list and a watch that fit together."""

from __future__ import annotations

import subprocess

import pytest

from build.kubectl_runs import PATIENCE_S, Kubectl, Obj


def settings(name: str, **labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def held(name: str) -> Obj:
    """Deleted only once somebody takes its finalizer away."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "finalizers": ["shoal.dev/hold"]}}


def test_by_name_by_label_and_all(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=[settings("a", x="1"), settings("b", x="1"), settings("c"), settings("d")])
    assert kubectl("delete", "configmap", "c").startswith('configmap "c" deleted')
    told = kubectl("delete", "configmaps", "-l", "x=1")
    assert [line.split()[1] for line in told.splitlines()] == ['"a"', '"b"']
    kubectl("delete", "configmaps", "--all")
    assert "configmap/d" not in kubectl.names("configmaps")
    assert kubectl.refused("delete", "configmap", "c").endswith('configmaps "c" not found')
    assert kubectl("delete", "configmap", "c", "--ignore-not-found") == ""


def test_a_dry_run_deletes_nothing(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    assert "(server dry run)" in kubectl("delete", "configmap", "a", "--dry-run=server")
    assert kubectl.names("configmap", "a") == ["configmap/a"]


def test_a_bound_pod_ends_when_its_kubelet_says_so_or_at_once_by_force(kubectl: Kubectl, gpu_node: str) -> None:
    spec = {"nodeName": gpu_node, "containers": [{"name": "main", "image": "x"}]}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec} for name in ("a", "b")]
    kubectl("create", "-f-", given=pods)
    kubectl("delete", "pods", "a", "b", "--wait=false")
    metadata = kubectl.get("pod", "a")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert "Terminating" in kubectl("get", "pod", "a")
    forced = kubectl.run("delete", "pod", "a", "--grace-period=0", "--force")
    assert (forced.code, forced.out.startswith('pod "a" force deleted')) == (0, True)
    assert "Immediate deletion does not wait for confirmation" in forced.err
    assert kubectl.names("pods") == ["pod/b"]
    kubectl("delete", "pod", "b", "--grace-period=0", "--force")


def test_an_unbound_pod_is_gone_at_once(kubectl: Kubectl) -> None:
    kubectl("run", "probe", "--image=x")
    assert kubectl("delete", "pod", "probe").startswith('pod "probe" deleted')
    assert kubectl.names("pods") == []


def test_a_finalizer_holds_what_is_deleted_until_it_is_taken_away(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=held("a"))
    kubectl("delete", "configmap", "a", "--wait=false")
    assert "deletionTimestamp" in kubectl.get("configmap", "a")["metadata"]
    refusal = kubectl.refused("wait", "--for=delete", "configmap/a", "--timeout=0s")
    assert "condition" in refusal or "timed out" in refusal
    kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert kubectl.names("configmaps") == ["configmap/kube-root-ca.crt"]


def test_waiting_for_a_deletion_ends_with_it(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=held("a"))
    command = kubectl.command("delete", "configmap", "a")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as deleting:
        assert deleting.stdout is not None
        assert deleting.stdout.readline().startswith('configmap "a" deleted')
        assert deleting.poll() is None
        kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        assert deleting.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(("cascade", "finalizers"), [("orphan", ["orphan"]), ("foreground", ["foregroundDeletion"])])
def test_cascades_leave_a_finalizer_for_the_garbage_collector(
    kubectl: Kubectl, cascade: str, finalizers: list[str]
) -> None:
    kubectl("create", "deployment", "web", "--image=x")
    kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--wait=false")
    assert kubectl.get("deployment", "web")["metadata"]["finalizers"] == finalizers


def test_a_namespace_that_still_holds_something_is_terminating_and_takes_nothing_new(kubectl: Kubectl) -> None:
    kubectl("create", "-f-", given=held("a"))
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    assert "Terminating" in kubectl("get", "namespace", kubectl.namespace)
    assert "deletionGracePeriodSeconds" not in kubectl.get("namespace", kubectl.namespace)["metadata"]
    refusal = kubectl.refused("create", "configmap", "b")
    assert f"unable to create new content in namespace {kubectl.namespace} because it is being terminated" in refusal


def test_the_default_namespace_cannot_be_deleted(kubectl: Kubectl) -> None:
    refusal = kubectl.refused("delete", "namespace", "default")
    assert refusal.endswith('namespaces "default" is forbidden: this namespace may not be deleted')


def test_wait_sees_conditions_that_hold_and_such_as_come(kubectl: Kubectl) -> None:
    kubectl("create", "job", "once", "--image=busybox", "--", "date")
    command = kubectl.command("wait", "--for=condition=Complete", "job/once", f"--timeout={PATIENCE_S}s")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as waiting:
        times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:05Z"}
        conditions = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
        counts = {"succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
        kubectl.set_status("job/once", {**times, **counts, "conditions": conditions})
        out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, out) == (0, "job.batch/once condition met\n")
    assert kubectl("wait", "--for=condition=Complete", "job/once") == "job.batch/once condition met\n"
    assert kubectl("get", "job", "once").splitlines()[1].split()[1:4] == ["Complete", "1/1", "5s"]


def test_wait_looks_at_any_field_and_gives_up_in_time(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    assert kubectl("wait", "--for=jsonpath={.data.x}=1", "configmap/a") == "configmap/a condition met\n"
    refusal = kubectl.refused("wait", "--for=jsonpath={.data.x}=2", "configmap/a", "--timeout=100ms")
    assert refusal == "error: timed out waiting for the condition on configmaps/a"


def test_wait_for_creation_ends_when_the_object_is_there(kubectl: Kubectl) -> None:
    command = kubectl.command("wait", "--for=create", "configmap/late", f"--timeout={PATIENCE_S}s")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as waiting:
        kubectl("create", "configmap", "late")
        out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, out) == (0, "configmap/late condition met\n")
