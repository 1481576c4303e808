"""Remedies of `shoal why` that were tried on files (nodes to repair, pods in the way), and the form of the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, job, node, pod, replicas, volcano_group
from build.why_answers import GROUP, TAINT, WhyAnswers, of_cluster, owned


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


# -- unhealthy GPUs ------------------------------------------------------------------------------------------------


def with_faults(name: str, healthy: int, faults: str = "") -> Object:
    made = node(name, healthy)
    made["status"]["capacity"] = {**made["status"]["allocatable"], "nvidia.com/gpu": 8}
    if faults:
        made["metadata"]["annotations"] = {"shoal.dev/gpu-faults": faults}
    return of_cluster(made)


def test_a_dead_gpu_is_named_with_its_xid_and_the_command_that_heals_it(told: WhyAnswers) -> None:
    text = told("pod/whole", with_faults("n", 7, '{"3": 79}'), pod("t/whole", 8))
    assert "unhealthy node n: 1 of 8 GPUs is unhealthy (GPU 3: XID 79)" in text
    assert "Repair or replace GPU 3 (XID 79) of node n. shoal cluster heal n --gpu 3" in text


def test_a_real_node_with_fewer_gpus_than_it_has_is_named_without_a_command(told: WhyAnswers) -> None:
    text = told("pod/whole", with_faults("n", 6), pod("t/whole", 8))
    assert "unhealthy node n: 2 of 8 GPUs are unhealthy" in text
    assert "Repair or replace 2 GPUs of node n." in text
    assert "shoal cluster heal" not in text


def test_a_repair_that_does_not_help_is_no_remedy(told: WhyAnswers) -> None:
    text = told("pod/whole", with_faults("n", 7, '{"3": 79}'), pod("t/other", 2, on="n"), pod("t/whole", 16))
    assert "1 of 8 GPUs is unhealthy" in text
    assert "Repair" not in text


# -- nodes that are not ready --------------------------------------------------------------------------------------


SILENT: dict[str, Any] = {
    "taints": [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
}


def silent(name: str, faults: str = "") -> Object:
    """A node whose kubelet has ended."""
    made = of_cluster(node(name, 8, spec=SILENT))
    message = "Kubelet stopped posting node status."
    made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "message": message}]
    if faults:
        made["metadata"]["annotations"] = {"shoal.dev/fault": faults}
    return made


def test_a_node_that_is_not_ready_is_named_and_has_to_be_repaired(told: WhyAnswers) -> None:
    text = told("pod/a", silent("n"), pod("t/a", 8))
    assert "unhealthy node n is not ready: Kubelet stopped posting node status." in text
    assert "would help Repair node n, which is not ready." in text
    assert "nearest The nearest node is n: with the change below, it takes the pod." in text
    assert "Tolerate" not in text
    assert "shoal cluster heal" not in text


def test_a_simulated_node_that_is_not_ready_has_the_command_that_heals_it(told: WhyAnswers) -> None:
    (remedy,) = told.document("pod/a", silent("n", '{"kind":"down"}'), pod("t/a", 8))["remedies"]
    assert remedy == {"words": "Repair node n, which is not ready.", "commands": ["shoal cluster heal n"]}


def test_a_node_that_is_not_ready_and_would_not_suffice_is_no_remedy(told: WhyAnswers) -> None:
    text = told("pod/a", silent("n"), pod("t/a", 16))
    assert "unhealthy node n is not ready" in text
    assert "Repair" not in text


def test_a_node_that_is_not_ready_and_that_the_pod_excludes_is_not_named(told: WhyAnswers) -> None:
    assert "not ready" not in told("pod/a", silent("n"), pod("t/a", 8, nodeSelector={"disk": "ssd"}))


# -- pods in the way -----------------------------------------------------------------------------------------------


def test_pods_of_the_same_job_are_never_proposed_to_end(told: WhyAnswers) -> None:
    siblings = [owned(pod(f"t/training-{at}", 4, on="n"), "Job", "training") for at in range(2)]
    waits = owned(pod("t/training-2", 4), "Job", "training")
    objects = [node("n", 8), job("t/training", 3, 4), *siblings, waits]
    assert "would help" not in told("pod/training-2", *objects)
    assert "Free 4 GPUs on n (t/other)." in told("pod/training-2", *objects[:-2], pod("t/other", 4, on="n"), waits)


def on_port(made: Object, port: int) -> Object:
    made["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
    return made


def test_a_host_port_that_another_pod_holds_is_named_in_the_remedy(told: WhyAnswers) -> None:
    world = [node("n", 8), on_port(pod("t/old", 1, on="n"), 8080), on_port(pod("t/new", 1), 8080)]
    assert "would help Free host port 8080 on n (t/old)." in told("pod/new", *world)
    full = [*world[:2], pod("t/other", 6, on="n"), on_port(pod("t/large", 2), 8080)]
    assert "would help Free host port 8080 and 1 GPU on n (t/old)." in told("pod/large", *full)


def test_a_host_port_that_the_pod_does_not_ask_for_is_not_named(told: WhyAnswers) -> None:
    world = [node("n", 8), on_port(pod("t/old", 8, on="n"), 8080), on_port(pod("t/new", 8), 9090)]
    assert "would help Free 8 GPUs on n (t/old)." in told("pod/new", *world)


def test_capacity_that_others_in_line_would_take_is_no_remedy(told: WhyAnswers) -> None:
    objects = [node("n", 8), pod("t/old", 8, on="n"), pod("t/first", 8), pod("t/second", 8)]
    assert "would help Free 8 GPUs on n (t/old)." in told("pod/first", *objects)
    text = told("pod/second", *objects)
    assert "To free capacity on n does not help: t/first, before it in line, takes it." in text
    assert "Free 8 GPUs" not in text


def test_a_pod_that_is_created_again_with_higher_priority_is_no_remedy(told: WhyAnswers) -> None:
    high = owned(pod("t/web-0", 8, on="n", priority=10), "ReplicaSet", "web")
    objects = [node("n", 8), replicas("ReplicaSet", "t/web", 1, 8), high, pod("t/low", 8)]
    assert "Free 8 GPUs" not in told("pod/low", *objects)
    high["spec"]["priority"] = 0
    assert "t/web-0 is created again and then waits behind it." in told("pod/low", *objects)


def test_a_member_of_a_group_without_a_controller_is_not_created_again(told: WhyAnswers) -> None:
    group = volcano_group("t/g", 1) | {"status": {"phase": "Running"}}
    member = pod("t/g-0", 8, on="n", annotations={GROUP: "g"})
    waits = pod("t/first", 8, priority=10, preemptionPolicy="Never")
    text = told("pod/first", node("n", 8), group, member, waits)
    assert "Free 8 GPUs on n (t/g-0)." in text
    assert "created again" not in text


# -- the form ------------------------------------------------------------------------------------------------------


def test_no_line_ends_in_blanks_and_commands_are_not_folded(told: WhyAnswers) -> None:
    text = told.text("pod/a", of_cluster(node("n", 8, spec={"taints": [TAINT]})), pod("t/a", 8))
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    (command,) = [line.strip() for line in text.splitlines() if "kubectl" in line]
    assert command.startswith("kubectl patch pod a -n t --type=json -p='")
    assert command.endswith("'")
    assert max(len(line) for line in text.splitlines() if "kubectl" not in line) <= 80


def test_the_document_has_the_remedies_with_their_commands(told: WhyAnswers) -> None:
    document = told.document("pod/a", of_cluster(node("n", 8, spec={"unschedulable": True})), pod("t/a", 8))
    assert document["remedies"] == [{"words": "Uncordon node n.", "commands": ["kubectl uncordon n"]}]
