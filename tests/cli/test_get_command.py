"""`shoal get gangs|queues|workloads|nodes`: lists for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, job, node, pod, volcano_group
from build.queue_manifests import flavor
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"


class Get:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def text(self, what: str, *objects: Object, options: tuple[str, ...] = ()) -> str:
        assert main(["get", what, "-f", as_file(self._folder, *objects), *options]) == 0
        return self._capsys.readouterr().out

    def json(self, what: str, *objects: Object, options: tuple[str, ...] = ()) -> Any:
        return json.loads(self.text(what, *objects, options=(*options, "-o", "json")))


@pytest.fixture
def get(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Get:
    # Whoever runs the tests may say how wide his terminal is.
    monkeypatch.delenv("COLUMNS", raising=False)
    return Get(tmp_path, capsys)


def gangs() -> list[Object]:
    """`t/runs` on four GPUs, `u/waits` for eight."""
    running = [pod(f"t/runs-{at}", 2, "n", annotations={GROUP: "runs"}) for at in range(2)]
    waiting = [pod(f"u/waits-{at}", 4, annotations={GROUP: "waits"}) for at in range(2)]
    return [node("n", 8), volcano_group("t/runs", 2), volcano_group("u/waits", 2), *running, *waiting]


def test_gangs_that_wait_come_first_with_the_reason(get: Get) -> None:
    found = get.json("gangs", *gangs())
    assert [(each["gang"], each["state"], each["needs"], each["running"], each["waiting"]) for each in found] == [
        ("u/waits", "waits", 2, 0, 2),
        ("t/runs", "runs", 2, 2, 0),
    ]
    assert found[0]["code"] == "GangDoesNotFit"
    assert "the gang needs 2 pods" in found[0]["message"]
    assert (found[1]["gpus"], found[1]["nodes"], found[1]["code"]) == (4, 1, "")


def test_a_gang_that_lost_pods_runs_with_too_few(get: Get) -> None:
    (found,) = get.json("gangs", node("n", 8), volcano_group("g", 3), pod("a", 1, "n", annotations={GROUP: "g"}))
    assert (found["state"], found["running"], found["needs"], found["code"]) == ("runs", 1, 3, "GangTooSmall")
    assert "2 pods ended or were lost" in found["message"]


def test_gangs_of_one_namespace(get: Get) -> None:
    assert [each["gang"] for each in get.json("gangs", *gangs(), options=("-n", "t"))] == ["t/runs"]


def test_gangs_as_a_table(get: Get) -> None:
    rows = [line.split() for line in get.text("gangs", *gangs()).splitlines()]
    assert rows == [
        ["gang", "state", "needs", "run", "wait", "GPUs", "because"],
        ["u/waits", "waits", "2", "0", "2", "8", "GangDoesNotFit"],
        ["t/runs", "runs", "2", "2", "0", "4"],
    ]
    assert "the gang needs 2 pods" in get.text("gangs", *gangs(), options=("-o", "wide"))


def test_what_may_be_long_is_the_last_column_and_brackets_are_no_markup(get: Get) -> None:
    job_of_two = job("t/nine", 2, 1, annotations={"shoal.dev/gang": "9"})
    heading, row = get.text("gangs", node("n", 8), job_of_two, options=("-o", "wide")).splitlines()
    assert heading.split() == ["gang", "state", "needs", "run", "wait", "GPUs", "nodes", "queue", "because"]
    assert row.split()[:7] == ["t/nine", "waits", "?", "0", "2", "2", "0"]
    assert "metadata.annotations[shoal.dev/gang]: the gang needs 9 pods, and spec.parallelism is 2" in row


def test_a_gang_without_pods_comes_last(get: Get) -> None:
    found = get.json("gangs", volcano_group("t/a-hollow", 2), *gangs())
    assert [(each["gang"], each["state"]) for each in found][-1] == ("t/a-hollow", "empty")


def test_no_gangs_are_a_line_and_an_empty_list(get: Get) -> None:
    assert get.text("gangs", node("n")) == "no gangs found\n"
    assert get.json("gangs", node("n")) == []


def queues() -> list[Object]:
    return [
        node("n", 16),
        flavor(),
        *gpu_queue("a", gpus(8), cohort="fleet"),
        *gpu_queue("b", gpus(8), cohort="fleet"),
        gpu_workload("b/held", 2, 4, "f"),
        gpu_job("a/one", 1, 16),
    ]


def test_queues_where_somebody_waits_come_first(get: Get) -> None:
    found = get.json("queues", *queues())
    assert [(each["queue"], each["clusterQueue"], each["cohort"]) for each in found] == [
        ("a/q", "a", "fleet"),
        ("b/q", "b", "fleet"),
    ]
    assert [(each["waiting"], each["admitted"], each["uses"]) for each in found] == [
        (1, 0, {}),
        (0, 1, {"nvidia.com/gpu": 8}),
    ]


def test_queues_as_a_table(get: Get) -> None:
    rows = [line.split() for line in get.text("queues", *queues()).splitlines()]
    assert rows[1] == ["a/q", "a", "1", "0", "nothing"]
    assert rows[2] == ["b/q", "b", "0", "1", "8", "GPUs"]


def test_a_queue_that_leads_nowhere_says_so(get: Get) -> None:
    lost = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "lost", "namespace": "t"},
    }
    found = get.json("queues", *queues(), lost | {"spec": {"clusterQueue": "nobody"}})
    assert next(each["closed"] for each in found if each["queue"] == "t/lost") == "its ClusterQueue nobody is not there"


def test_workloads_that_hold_quota_and_that_wait(get: Get) -> None:
    found = get.json("workloads", *queues())
    assert [each["workload"] for each in found["holding"]] == ["b/held"]
    assert [(each["workload"], each["reason"]["code"]) for each in found["waiting"]] == [
        ("a/job-one", "WaitingForQuota")
    ]
    assert get.json("workloads", *queues(), options=("-n", "b"))["waiting"] == []


def test_nodes_are_those_of_top(get: Get) -> None:
    assert [(each["name"], each["gpus"], each["held"]) for each in get.json("nodes", *gangs())] == [("n", 8, 4)]
    assert "████····" in get.text("nodes", *gangs())


@pytest.mark.parametrize("what", ["queues", "workloads"])
def test_where_nobody_speaks_of_queues_there_is_one_line(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get", what, "-f", as_file(tmp_path, node("n"))]) == 2
    assert "holds no queues" in capsys.readouterr().err
