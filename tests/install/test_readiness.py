"""What stages wait for, which pods block them, the smoke test, the rows of the status, and what nodes lose again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.install.images import needed_images
from shoal.install.progress_rows import STAGES_ANNOTATION, component_rows, first_problem, node_rows
from shoal.install.readiness import blocked_pods, has_no_gpus, waits_for
from shoal.install.release import Release
from shoal.install.smoke_test import outcome, resource_to_test, smoke_test_pod
from shoal.install.values.reading import ChartValues, ValuesText, read_values
from shoal.install.written_fields import removal_patch

Obj = dict[str, Any]


def _deployment(generation: int = 1, **status: int) -> Obj:
    meta = {"name": "shoal", "generation": generation}
    return {"kind": "Deployment", "metadata": meta, "spec": {"replicas": 2}, "status": status}


ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}
IMAGE = "check the name of the image, image.repository and imagePullSecrets"
FULL = "The node was low on resource: ephemeral-storage"
READY = {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (_deployment(**READY), ""),
        (_deployment(2, **READY), "has not seen the change"),
        (_deployment(**{**READY, "availableReplicas": 1}), "1 of 2 pods ready"),
        (_deployment(**{**READY, "replicas": 3}), "2 of 2 pods ready"),
        (_deployment(), "has not seen the change"),
        ({"kind": "ConfigMap", "metadata": {}}, ""),
        ({"kind": "CustomResourceDefinition", "metadata": {}}, "not established"),
        (
            {
                "kind": "CustomResourceDefinition",
                "status": {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "kind is taken"}]},
            },
            "kind is taken",
        ),
        ({"kind": "CustomResourceDefinition", "status": ESTABLISHED}, ""),
        ({"kind": "ClusterPolicy", "metadata": {}, "status": {"state": "ready"}}, ""),
        ({"kind": "ClusterPolicy", "metadata": {}}, "the operator has not reported a state"),
        ({"kind": "ClusterPolicy", "metadata": {}, "status": {"state": "notReady"}}, "state notReady"),
        (
            {
                "kind": "ClusterPolicy",
                "metadata": {"generation": 2},
                "status": {"state": "ready", "conditions": [{"type": "Ready", "observedGeneration": 1}]},
            },
            "has not seen the change",
        ),
        (
            {
                "kind": "ClusterPolicy",
                "metadata": {},
                "status": {
                    "state": "notReady",
                    "conditions": [{"type": "Error", "status": "True", "reason": "DriverNotReady", "message": "x"}],
                },
            },
            "DriverNotReady: x",
        ),
        (
            {"kind": "DaemonSet", "metadata": {}, "status": {"desiredNumberScheduled": 3, "numberReady": 1}},
            "1 of 3 nodes ready",
        ),
    ],
)  # fmt: skip
def test_what_an_object_waits_for(obj: Obj, words: str) -> None:
    found = waits_for(obj)
    assert words in found
    assert bool(found) == bool(words)


def test_a_policy_without_nodes_with_gpus_is_recognised() -> None:
    assert has_no_gpus({"status": {"conditions": [{"reason": "NoGPUNodes"}]}})
    assert not has_no_gpus({"status": {"conditions": [{"reason": "Reconciled"}]}})


def _pod(node: str = "n1", **status: Any) -> Obj:
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": node}, "status": status}


def _waiting(reason: str, message: str = "") -> Obj:
    state = {"waiting": {"reason": reason, "message": message}}
    return _pod(phase="Pending", containerStatuses=[{"image": "shoal:1", "state": state}])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (_pod(phase="Running"), []),
        (_waiting("ContainerCreating"), []),
        (
            _waiting("ImagePullBackOff", "Back-off pulling image"),
            [f"workloads: pod p on node n1: ImagePullBackOff: Back-off pulling image; {IMAGE}"],
        ),
        (
            _waiting("CrashLoopBackOff", "x"),
            ["workloads: pod p on node n1: CrashLoopBackOff: x; read its log: kubectl logs -n ns p --previous"],
        ),
        (
            _pod(phase="Failed", reason="Evicted", message=FULL),
            [f"workloads: pod p on node n1: Evicted: {FULL}; free space there; the pod is replaced"],
        ),
        (
            _pod("", conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]),
            ["workloads: pod p: not scheduled: 0/3 nodes are available; kubectl describe pod -n ns p"],
        ),
    ],
)  # fmt: skip
def test_a_pod_that_does_not_start_is_one_line_with_stage_node_and_next_step(pod: Obj, expected: list[str]) -> None:
    assert list(blocked_pods([pod], "workloads")) == expected


def _values(*sets: str) -> ChartValues:
    return read_values([ValuesText("--set", one) for one in sets])


@pytest.mark.parametrize(
    ("allocatable", "resource"),
    [
        ([{"nvidia.com/gpu": "8"}], "nvidia.com/gpu"),
        ([{"nvidia.com/gpu": "0"}, {"nvidia.com/mig-1g.10gb": "7"}], "nvidia.com/mig-1g.10gb"),
        ([{"cpu": "8"}], ""),
        ([], ""),
    ],
)
def test_the_resource_of_the_smoke_test(allocatable: list[dict[str, str]], resource: str) -> None:
    assert resource_to_test(allocatable) == resource


def test_the_smoke_test_is_placed_by_shoal_if_shoal_schedules() -> None:
    release = Release()
    assert smoke_test_pod(release, _values(), "nvidia.com/gpu")["spec"]["schedulerName"] == "shoal"
    other = smoke_test_pod(release, _values("controllers={advisor}"), "nvidia.com/gpu")
    assert other["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Pending"}, None),
        ({"phase": "Running"}, None),
        ({"phase": "Succeeded"}, ""),
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError"}, "UnexpectedAdmissionError"),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]},
            "exit code 1: Error",
        ),
    ],
)
def test_the_outcome_of_the_smoke_test(status: Obj, expected: str | None) -> None:
    assert outcome({"status": status}) == expected


def _set(name: str, ready: int, image: str) -> Obj:
    spec = {"template": {"spec": {"containers": [{"image": image}]}}}
    return {
        "kind": "DaemonSet",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec,
        "status": {"desiredNumberScheduled": 2, "numberReady": ready},
    }


def _node(name: str, stages: Obj | None = None, **allocatable: str) -> Obj:
    annotations = {STAGES_ANNOTATION: json.dumps(stages)} if stages else {}
    labels = {"nvidia.com/gpu.present": "true"}
    amounts = {f"nvidia.com/{key}": value for key, value in allocatable.items()}
    meta = {"name": name, "labels": labels, "annotations": annotations}
    return {"metadata": meta, "status": {"allocatable": amounts}}


def test_components_have_their_version_and_state() -> None:
    deployment = {**_deployment(**READY, readyReplicas=2)}
    deployment["spec"] = {**deployment["spec"], "template": {"spec": {"containers": [{"image": "r:5000/shoal:1.2"}]}}}
    driver = _set("nvidia-driver-daemonset", 1, "nvcr.io/nvidia/driver:580.95.05-ubuntu24.04")
    plugin = _set("nvidia-device-plugin-daemonset", 2, "shoal@sha256:0123456789abcdef")
    history = {**deployment, "metadata": {**deployment["metadata"], "name": "shoal-history"}}
    rows = list(component_rows([history, deployment], [plugin, driver, _set("other", 0, "x")]))
    assert [(one.component, one.ready, one.version) for one in rows] == [
        ("scheduler", "2/2", "1.2"),
        ("history", "2/2", "1.2"),
        ("driver", "1/2", "580.95.05-ubuntu24.04"),
        ("device plugin", "2/2", "sha256:0123456789ab"),
    ]
    assert [one.state for one in rows] == ["ready", "ready", "1 of 2 nodes ready", "ready"]


def test_the_first_problem_is_the_layer_that_failed() -> None:
    failed = {"layer": "driver", "state": "failed", "message": "pod d: exit 1", "stages": {"driver": "failed"}}
    ready = {"layer": "", "state": "ready", "stages": {"driver": "ready"}}
    nodes = list(node_rows([_node("a"), _node("b", failed), _node("c", ready, gpu="8"), {"metadata": {"name": "cpu"}}]))
    assert [(one.node, one.state) for one in nodes] == [("a", "waiting"), ("b", "failed"), ("c", "ready")]
    assert nodes[2].gpus == "gpu=8"
    assert first_problem("deployed", (), nodes) == "driver on node b: pod d: exit 1"
    assert first_problem("failed", (), nodes).startswith("release: failed")
    assert first_problem("deployed", (), nodes[2:]) == ""


def test_a_damaged_annotation_is_ignored() -> None:
    node = _node("a", gpu="8")
    node["metadata"]["annotations"][STAGES_ANNOTATION] = "{"
    assert [one.state for one in node_rows([node])] == ["ready"]


def test_a_node_loses_the_labels_that_shoal_wrote_and_keeps_the_others() -> None:
    def wrote(manager: str, *labels: str) -> Obj:
        fields: Obj = {f"f:{name}": {} for name in labels}
        return {"manager": manager, "fieldsV1": {"f:metadata": {"f:labels": fields}}}

    labels = dict.fromkeys(("nvidia.com/gpu.present", "nvidia.com/gpu.product", "team", "nvidia.com/mig.config"), "x")
    managed = [
        wrote("shoal-operator", "nvidia.com/gpu.present", "team"),
        wrote("shoal-agent-labels", "nvidia.com/gpu.product", "nvidia.com/gone"),
        wrote("kubectl", "nvidia.com/mig.config", "team"),
    ]
    node = {"metadata": {"name": "a", "labels": labels, "managedFields": managed}}
    expected = {"nvidia.com/gpu.present": None, "nvidia.com/gpu.product": None}
    assert removal_patch(node) == {"metadata": {"labels": expected}}
    assert removal_patch({"metadata": {"name": "b"}}) == {}


def test_where_no_node_had_labels_of_gpus_those_of_all_components_go() -> None:
    labels = dict.fromkeys(("nvidia.com/gpu.product", "nvidia.com/mig.config", "team"), "x")
    node: Obj = {"metadata": {"name": "a", "labels": labels}}
    assert removal_patch(node) == {}
    assert removal_patch(node, had_labels=False) == {"metadata": {"labels": {"nvidia.com/gpu.product": None}}}
    node["metadata"]["labels"] = {"nvidia.com/mig.config": "all-disabled"}
    node["metadata"]["annotations"] = {"shoal.dev/topology": "x", "shoal.dev/gpu-software": "pods"}
    expected = {"labels": {"nvidia.com/mig.config": None}, "annotations": {"shoal.dev/topology": None}}
    assert removal_patch(node, had_labels=False) == {"metadata": expected}


def test_the_images_of_an_installation() -> None:
    images = needed_images(_values(), "0.2.0", ("ubuntu24.04",))
    assert images == [
        "shoal:0.2.0",
        "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
        "nvcr.io/nvidia/driver:580.95.05-ubuntu24.04",
        "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.8.1",
        "nvcr.io/nvidia/k8s/container-toolkit:v1.18.0",
    ]
    without = needed_images(_values("driver.enabled=false,toolkit.enabled=false,smokeTest.enabled=false"), "0.2.0")
    assert without == ["shoal:0.2.0"]
    own = _values("devicePlugin.repository=r,devicePlugin.image=p,devicePlugin.version=sha256:00")
    assert "r/p@sha256:00" in needed_images(own, "0.2.0")
