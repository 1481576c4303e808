"""Nodes by kubectl: taint, cordon, drain with and without leave of a budget; and what is said into a pod on one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from build.kubectl_runs import PATIENCE_S, Kubectl, Obj

BoundPod = Callable[..., str]
DRAIN = ("--force", "--ignore-daemonsets", "--delete-emptydir-data")


def taints(kubectl: Kubectl, node: str) -> list[Obj]:
    found: list[Obj] = kubectl.get("node", node)["spec"].get("taints", [])
    return found


def test_taints_are_set_changed_and_removed(kubectl: Kubectl, gpu_node: str) -> None:
    assert kubectl("taint", "node", gpu_node, "gpu=h100:NoSchedule") == f"node/{gpu_node} tainted\n"
    refusal = kubectl.refused("taint", "node", gpu_node, "gpu=a100:NoSchedule")
    assert refusal.endswith("already has gpu taint(s) with same effect(s) and --overwrite is false")
    assert kubectl("taint", "node", gpu_node, "gpu=a100:NoSchedule", "--overwrite") == f"node/{gpu_node} modified\n"
    assert taints(kubectl, gpu_node) == [{"effect": "NoSchedule", "key": "gpu", "value": "a100"}]
    assert kubectl("taint", "node", gpu_node, "gpu-") == f"node/{gpu_node} untainted\n"
    assert taints(kubectl, gpu_node) == []


def test_cordon_closes_a_node_and_uncordon_opens_it(kubectl: Kubectl, gpu_node: str) -> None:
    assert kubectl("cordon", gpu_node) == f"node/{gpu_node} cordoned\n"
    assert kubectl("cordon", gpu_node) == f"node/{gpu_node} already cordoned\n"
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", gpu_node)
    assert kubectl("uncordon", gpu_node) == f"node/{gpu_node} uncordoned\n"
    assert "unschedulable" not in kubectl.get("node", gpu_node)["spec"]


def test_drain_evicts_pods_that_nothing_protects(kubectl: Kubectl, gpu_node: str, bound_pod: BoundPod) -> None:
    bound_pod("a")
    bound_pod("b")
    refusal = kubectl.refused("drain", gpu_node)
    assert "cannot delete Pods that declare no controller (use --force to override)" in refusal
    told = kubectl("drain", gpu_node, *DRAIN)
    assert told.splitlines()[-1] == f"node/{gpu_node} drained"
    assert kubectl.names("pods") == []
    assert kubectl.get("node", gpu_node)["spec"]["unschedulable"] is True


def test_a_budget_holds_a_drain_up_until_it_allows_one_more(
    kubectl: Kubectl, gpu_node: str, bound_pod: BoundPod
) -> None:
    bound_pod("a", app="x")
    kubectl("create", "pdb", "keep", "--selector=app=x", "--min-available=1")
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}
    kubectl.set_status("pdb/keep", {**counts, "disruptionsAllowed": 0})
    command = kubectl.command("drain", gpu_node, *DRAIN, f"--timeout={PATIENCE_S}s")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=kubectl.environment()) as draining:
        assert draining.stderr is not None
        told = next(line for line in draining.stderr if "error when evicting" in line)
        assert "Cannot evict pod as it would violate the pod's disruption budget." in told
        assert kubectl.names("pods") == ["pod/a"]
        draining.terminate()
        draining.wait(PATIENCE_S)
    kubectl.set_status("pdb/keep", {**counts, "disruptionsAllowed": 1})
    kubectl("drain", gpu_node, *DRAIN)
    assert kubectl.names("pods") == []
    assert kubectl.get("pdb", "keep")["status"]["disruptionsAllowed"] == 0


def test_a_dry_drain_evicts_nobody(kubectl: Kubectl, gpu_node: str, bound_pod: BoundPod) -> None:
    bound_pod("a")
    kubectl("drain", gpu_node, *DRAIN, "--dry-run=server")
    assert kubectl.names("pods") == ["pod/a"]
    assert "unschedulable" not in kubectl.get("node", gpu_node)["spec"]


def test_exec_answers_what_a_gpu_pod_is_asked(kubectl: Kubectl, bound_pod: BoundPod) -> None:
    pod = bound_pod()
    listed = kubectl("exec", pod, "--", "nvidia-smi", "-L").splitlines()
    assert len(listed) == 1
    assert listed[0].startswith("GPU 0: ")
    assert "NVIDIA-SMI" in kubectl("exec", pod, "-c", "main", "--", "nvidia-smi")
    environment = kubectl("exec", pod, "--", "env").splitlines()
    assert {"RANK=0", f"HOSTNAME={pod}"} <= set(environment)


def test_other_commands_end_as_a_missing_program_does(kubectl: Kubectl, bound_pod: BoundPod) -> None:
    done = kubectl.run("exec", bound_pod(), "--", "python", "train.py")
    assert done.code == 127
    assert done.err.startswith("python train.py: this pod is simulated and runs no process")


def test_exec_into_a_pod_without_a_node_is_refused(kubectl: Kubectl) -> None:
    kubectl("run", "probe", "--image=x")
    assert kubectl.refused("exec", "probe", "--", "env").endswith("pod probe does not have a host assigned")


@pytest.mark.parametrize("command", ["attach {}", "port-forward {} 0:80", "cp {}:/etc/hosts here", "cp . {}:/tmp"])
def test_what_needs_a_process_is_refused_in_one_line(kubectl: Kubectl, bound_pod: BoundPod, command: str) -> None:
    done = kubectl.run(*command.format(bound_pod()).split())
    assert done.code != 0
    told = (done.out + done.err).splitlines()
    assert len([line for line in told if "simulated and run" in line]) == 1
    assert not [line for line in told if "failed" in line]


def test_logs_say_that_there_is_no_process(kubectl: Kubectl, bound_pod: BoundPod) -> None:
    pod = bound_pod()
    assert "simulated" in kubectl("logs", pod)
    assert "simulated" in kubectl("logs", pod, "--follow", "--tail=10")
    assert kubectl.refused("logs", pod, "-c", "other").startswith(f"error: container other is not valid for pod {pod}")
    assert "previous terminated container" in kubectl.refused("logs", pod, "--previous")


def test_logs_of_a_pod_that_has_not_started(kubectl: Kubectl, gpu_node: str) -> None:
    kubectl("run", "probe", "--image=x")
    assert kubectl("logs", "probe") == ""
    kubectl("run", "bound", "--image=x", f'--overrides={{"spec": {{"nodeName": "{gpu_node}"}}}}')
    waiting = {"name": "bound", "state": {"waiting": {"reason": "ContainerCreating"}}, "ready": False}
    status = {**waiting, "restartCount": 0, "image": "x", "imageID": ""}
    kubectl.set_status("pod/bound", {"containerStatuses": [status]})
    refusal = kubectl.refused("logs", "bound")
    assert refusal.endswith('container "bound" in pod "bound" is waiting to start: ContainerCreating')
    kubectl("delete", "pod", "bound", "--force", "--grace-period=0")


def test_debug_adds_a_container_to_a_pod_that_runs(kubectl: Kubectl, bound_pod: BoundPod) -> None:
    pod = bound_pod()
    kubectl("debug", pod, "--image=busybox", "--container=look", "--profile=general", "--", "date")
    (added,) = kubectl.get("pod", pod)["spec"]["ephemeralContainers"]
    assert (added["name"], added["command"]) == ("look", ["date"])


def test_top_says_in_one_line_that_there_are_no_metrics(kubectl: Kubectl) -> None:
    assert kubectl.refused("top", "pods") == "error: Metrics API not available"
    assert kubectl.refused("top", "nodes") == "error: Metrics API not available"
