"""What `shoal why` proposes for a pod that its own spec keeps from every node; each command is followed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from build.followed_commands import followed
from build.manifests import Object, job, node, pod, priority_class, replicas, thing
from build.why_answers import WhyAnswers, of_cluster

PENDING = {"phase": "Pending"}


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


def machine(name: str = "n", gpus: int = 8) -> Object:
    return of_cluster(node(name, gpus, labels={"kubernetes.io/hostname": name}))


def waiting(gpus: int = 1, **spec: Any) -> Object:
    return of_cluster(pod("t/p", gpus, status=PENDING, **spec))


def with_claim(name: str) -> Object:
    return waiting(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])


def claim(name: str, storage_class: str = "fast") -> Object:
    spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"]}
    return of_cluster(thing("v1", "PersistentVolumeClaim", f"t/{name}", spec=spec, status={"phase": "Pending"}))


def storage_class(name: str = "fast") -> Object:
    return thing(
        "storage.k8s.io/v1",
        "StorageClass",
        name,
        provisioner="csi.example.com",
        volumeBindingMode="WaitForFirstConsumer",
    )


CASES: dict[str, list[Object]] = {
    "a misspelled scheduler": [machine(), waiting(schedulerName="sholl")],
    "a misspelled claim": [machine(), storage_class(), claim("data"), with_claim("dta")],
    "a misspelled node": [machine("gpu-1"), of_cluster(pod("t/p", 1, on="gpu-l", status=PENDING))],
    "a node that no other is like": [machine(), of_cluster(pod("t/p", 1, on="elsewhere", status=PENDING))],
    "a scheduling gate": [machine(), waiting(schedulingGates=[{"name": "example.com/approval"}])],
    "a misspelled storage class": [machine(), storage_class(), claim("data", "fsat"), with_claim("data")],
    "a storage class that only one can replace": [machine(), storage_class(), claim("data", "x"), with_claim("data")],
}


@pytest.mark.parametrize("case", CASES)
def test_the_pod_runs_after_the_command_of_its_correction(case: str, told: WhyAnswers) -> None:
    objects = CASES[case]
    (command,) = told.commands("pod/p", *objects)
    after = followed(copy.deepcopy(objects), command)
    (changed,) = (each for each in after if each["kind"] == "Pod")
    document = told.document("pod/p", *after)
    fits = document["outcome"].startswith(("runs on", "starts on", "waits: by now it fits"))
    assert fits, document
    assert document["remedies"] == []
    assert changed["spec"].get("schedulerName", "shoal") == "shoal"


@pytest.mark.parametrize("case", CASES)
def test_a_correction_after_which_the_pod_would_wait_is_no_remedy(case: str, told: WhyAnswers) -> None:
    objects = [copy.deepcopy(each) for each in CASES[case]]
    for each in objects:
        if each["kind"] == "Node":
            each["status"]["allocatable"]["nvidia.com/gpu"] = 0
    assert told.commands("pod/p", *objects) == []


def test_the_answer_says_who_normally_removes_a_scheduling_gate(told: WhyAnswers) -> None:
    text = told("pod/p", *CASES["a scheduling gate"])
    assert "Remove example.com/approval, as the controller that set it normally does." in text


def test_storage_classes_that_exist_are_named_where_none_is_alike(told: WhyAnswers) -> None:
    objects = [machine(), storage_class("fast"), storage_class("slow"), claim("data", "x"), with_claim("data")]
    assert "Those that exist: fast, slow." in told("pod/p", *objects)
    assert told.commands("pod/p", *objects) == []


def test_a_priority_class_that_does_not_exist_is_created_by_a_command(told: WhyAnswers) -> None:
    made = of_cluster(job("t/train", 1, 1))
    made["spec"]["template"]["spec"]["priorityClassName"] = "nosuch"
    objects = [machine(), made, priority_class("gold", 100)]
    (command,) = told.commands("job/train", *objects)
    assert command == "kubectl create priorityclass nosuch --value=0"
    document = told.document("job/train", *followed(objects, command))
    assert "it would run on n" in document["outcome"]


def test_a_misspelled_priority_class_is_corrected_in_the_template(told: WhyAnswers) -> None:
    made = of_cluster(replicas("Deployment", "t/web", 1, 1))
    made["spec"]["template"]["spec"]["priorityClassName"] = "golld"
    (command,) = told.commands("deployment/web", machine(), made, priority_class("gold", 100))
    assert command.startswith("kubectl patch deployment web -n t --type=json")
    assert '"value":"gold"' in command


def limited(bounds: Object, kind: str = "Container") -> list[Object]:
    made = of_cluster(replicas("Deployment", "t/web", 1, 1))
    resources = {"limits": {"cpu": "4", "nvidia.com/gpu": 1}, "requests": {"cpu": "500m"}}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    limits = [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, {"type": kind, **bounds}]
    return [machine(), made, of_cluster(thing("v1", "LimitRange", "t/limits", spec={"limits": limits}))]


@pytest.mark.parametrize("kind", ["Container", "Pod"])
@pytest.mark.parametrize(
    ("bounds", "path", "value"), [({"max": {"cpu": "2"}}, "max", "4"), ({"min": {"cpu": "1"}}, "min", "500m")]
)
def test_the_bound_of_a_limit_range_that_refuses_pods_is_changed_by_a_command(
    bounds: Object, path: str, value: str, kind: str, told: WhyAnswers
) -> None:
    objects = limited(bounds, kind)
    (command,) = told.commands("deployment/web", *objects)
    assert command.startswith("kubectl patch limitrange limits -n t --type=json")
    assert f'"path":"/spec/limits/1/{path}/cpu","value":"{value}"' in command
    document = told.document("deployment/web", *followed(copy.deepcopy(objects), command))
    assert "it would run on n" in document["outcome"]


def test_a_ratio_of_a_limit_range_is_not_changed(told: WhyAnswers) -> None:
    assert told.commands("deployment/web", *limited({"maxLimitRequestRatio": {"cpu": "2"}})) == []


def test_a_bound_is_not_changed_for_pods_that_would_wait_as_well(told: WhyAnswers) -> None:
    objects = limited({"max": {"cpu": "2"}})
    objects[0]["status"]["allocatable"]["nvidia.com/gpu"] = 0
    assert told.commands("deployment/web", *objects) == []
