"""What `shoal why` proposes where the objects of a queue do not serve a workload; each command is followed."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from build.followed_commands import followed
from build.gpu_queues import gpu_queue, gpu_workload, gpus
from build.manifests import Object, job, node, pod, thing
from build.queue_manifests import KUEUE, condition, flavor
from build.why_answers import WhyAnswers, of_cluster, owned

QUEUE = {"kueue.x-k8s.io/queue-name": "q"}


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


def with_cpu(cpu: str) -> list[Object]:
    """A job that requests a resource which its queue does not count."""
    made = job("t/train", 2, 4, labels=QUEUE, suspend=True)
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    return [of_cluster(node("n", 8)), flavor(), *gpu_queue("t", gpus(8)), of_cluster(made)]


def test_a_resource_that_the_queue_does_not_cover_is_added_by_a_command(told: WhyAnswers) -> None:
    objects = with_cpu("1500m")
    (command,) = told.commands("job/train", *objects)
    assert '"value":{"name":"cpu","nominalQuota":"3"}' in command
    document = told.document("job/train", *followed(copy.deepcopy(objects), command))
    assert document["outcome"] == "waits: by now it would be admitted"


def test_a_resource_is_not_added_where_the_workload_would_wait_as_well(told: WhyAnswers) -> None:
    objects = with_cpu("200")
    assert told.commands("job/train", *objects) == []
    assert "Then it would wait as well." in told("job/train", *objects)


def test_the_controller_of_an_inactive_admission_check_is_named(told: WhyAnswers) -> None:
    spec = {"controllerName": "example.com/budget-controller"}
    status = {"conditions": [condition("Active", "False")]}
    check = thing(KUEUE, "AdmissionCheck", "budget", spec=spec, status=status)
    rules = {"admissionChecks": [{"name": "budget"}]}
    queue = gpu_queue("t", gpus(8), admissionChecksStrategy=rules)
    objects = [
        of_cluster(node("n", 8)),
        flavor(),
        *queue,
        check,
        of_cluster(job("t/train", 1, 1, labels=QUEUE, suspend=True)),
    ]
    text = told("job/train", *objects)
    assert "AdmissionCheck budget is set by its controller, example.com/budget-controller; does it run?" in text
    assert "kubectl describe admissioncheck budget" in text


def test_the_flavor_from_which_a_selector_comes_that_no_node_meets_is_named(told: WhyAnswers) -> None:
    label, value = "nvidia.com/gpu.product", "NVIDIA-B200"
    large = flavor()
    large["spec"] = {"nodeLabels": {label: value}}
    waits = of_cluster(pod("t/train-0", 1, status={"phase": "Pending"}, nodeSelector={label: value}))
    objects = [
        of_cluster(node("n", 8, labels={label: "NVIDIA-H100-80GB-HBM3"})),
        large,
        *gpu_queue("t", gpus(8)),
        of_cluster(job("t/train", 1, 1, labels=QUEUE, suspend=False)),
        owned(gpu_workload("t/job-train", 1, 1, on="f"), "Job", "train"),
        owned(waits, "Job", "train"),
    ]
    words = "ResourceFlavor f adds the nodeSelector nvidia.com/gpu.product=NVIDIA-B200 to its pods (spec.nodeLabels)"
    assert words in told("job/train", *objects)
    objects.append(of_cluster(node("b200", 8, labels={label: value})))
    assert "adds the nodeSelector" not in told("job/train", *objects)
