"""What is told of jobs that stand in a queue of Kueue: by which it runs, and in which it waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.gpu_queues import gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, job, node, pod
from build.queue_manifests import flavor
from shoal.cli.main import main

QUEUE = {"kueue.x-k8s.io/queue-name": "q"}


def owned(obj: Object, kind: str, name: str, version: str = "batch/v1") -> Object:
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": "1", "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


def world() -> list[Object]:
    """One job runs on all eight GPUs of its queue, one waits for them."""
    runs = job("t/runs", 1, 8, labels=QUEUE, annotations={"shoal.dev/gang": "true"}, suspend=False)
    waits = job("t/waits", 2, 4, labels=QUEUE, annotations={"shoal.dev/gang": "true"}, suspend=True)
    return [
        node("n", 8),
        flavor(),
        *gpu_queue("t", gpus(8)),
        runs,
        waits,
        owned(gpu_workload("t/job-runs", 1, 8, on="f"), "Job", "runs"),
        owned(gpu_workload("t/job-waits", 2, 4), "Job", "waits"),
        owned(pod("t/runs-0", 8, on="n", status={"phase": "Running"}), "Job", "runs"),
    ]


def told(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str, objects: list[Object]) -> str:
    assert main([*arguments, "-f", as_file(folder, *objects)]) == 0
    return capsys.readouterr().out


def test_a_running_job_names_its_workload_queue_and_flavor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(told(tmp_path, capsys, "why", "job/runs", objects=world()).split())
    assert "queue workload t/job-runs of queue q, in t pods main: flavor f" in said


def test_the_gang_of_a_suspended_job_is_listed_with_queue_and_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gangs = json.loads(told(tmp_path, capsys, "get", "gangs", "-o", "json", objects=world()))
    waits = next(each for each in gangs if each["gang"] == "t/waits")
    assert waits["state"] == "queued"
    assert waits["queue"] == "t/q"
    assert waits["code"] == "WaitingForQuota"
    assert "quota" in waits["message"]
    runs = next(each for each in gangs if each["gang"] == "t/runs")
    assert (runs["state"], runs["queue"]) == ("runs", "t/q")
    assert "queued" in told(tmp_path, capsys, "get", "gangs", objects=world())


def test_of_a_deactivated_workload_it_is_said_what_activates_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = world()
    objects[-2]["spec"]["active"] = False
    said = " ".join(told(tmp_path, capsys, "why", "job/waits", objects=objects).split())
    assert "set spec.active of Workload t/job-waits to true" in said.replace("Set", "set")
