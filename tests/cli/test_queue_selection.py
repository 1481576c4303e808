"""`shoal queue` with -l, --sort-by and -w."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, thing, volcano_group
from build.queue_manifests import flavor
from shoal.cli.list_watch import ShownText
from shoal.cli.main import main


def labelled(objects: list[Object], kind: str, name: str, **labels: str) -> None:
    (found,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    found["metadata"]["labels"] = labels


def teams() -> list[Object]:
    """Cluster queues a and b of one cohort; a job waits in a, a workload holds quota in b; c stands alone."""
    objects = [
        node("n", 32),
        flavor(),
        *gpu_queue("a", gpus(8), cohort="fleet"),
        *gpu_queue("b", gpus(8), cohort="fleet"),
        *gpu_queue("c", gpus(8)),
        gpu_workload("b/held", 3, 4, "f"),
        gpu_job("a/one", 1, 16),
    ]
    labelled(objects, "ClusterQueue", "b", team="b")
    labelled(objects, "ClusterQueue", "c", team="c")
    for name, at in (("a", "2026-03-01"), ("b", "2026-02-01"), ("c", "2026-01-01")):
        (queue,) = [each for each in objects if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == name]
        queue["metadata"]["creationTimestamp"] = f"{at}T00:00:00Z"
    return objects


class Queue:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def json(self, *options: str, objects: list[Object]) -> Any:
        assert main(["queue", "-f", as_file(self._folder, *objects), *options, "-o", "json"]) == 0
        return json.loads(self._capsys.readouterr().out)

    def wrong(self, *options: str, objects: list[Object]) -> str:
        assert main(["queue", "-f", as_file(self._folder, *objects), *options]) == 2
        return self._capsys.readouterr().err


@pytest.fixture
def queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Queue:
    return Queue(tmp_path, capsys)


def test_a_cluster_queue_with_the_labels_is_shown_with_its_local_queues_and_workloads(queue: Queue) -> None:
    found = queue.json("-l", "team=b", "--workloads", objects=teams())
    assert [(each["name"], [child["name"] for child in each["children"]]) for each in found["roots"]] == [
        ("b", ["b/q"])
    ]
    assert [each["workload"] for each in found["workloads"]["holding"]] == ["b/held"]
    assert found["workloads"]["waiting"] == []


def test_a_local_queue_with_the_labels_is_shown_below_its_cluster_queue(queue: Queue) -> None:
    objects = teams()
    (local,) = [each for each in objects if each["kind"] == "LocalQueue" and each["metadata"]["namespace"] == "a"]
    local["metadata"]["labels"] = {"stage": "dev"}
    found = queue.json("-l", "stage in (dev)", objects=objects)
    assert [(each["name"], [child["name"] for child in each["children"]]) for each in found["roots"]] == [
        ("a", ["a/q"])
    ]


def test_queues_of_volcano_are_selected_and_sorted_too(queue: Queue) -> None:
    made = [thing("scheduling.volcano.sh/v1beta1", "Queue", name, spec={}) for name in ("x-10", "x-9", "root")]
    made[0]["metadata"]["labels"] = made[1]["metadata"]["labels"] = {"team": "x"}
    objects = [node("n", 8), *made, volcano_group("t/g", 1)]
    found = queue.json("-l", "team=x", "--sort-by", ".queue", objects=objects)
    assert [each["queue"] for each in found["others"]] == ["x-9", "x-10"]


@pytest.mark.parametrize(
    ("path", "roots", "inside"),
    [
        (".name", ["c", "fleet"], ["a", "b"]),
        (".waiting.workloads", ["c", "fleet"], ["b", "a"]),
        (".metadata.creationTimestamp", ["fleet", "c"], ["b", "a"]),
        ("{.quotas[0].used}", ["c", "fleet"], ["a", "b"]),
    ],
)
def test_queues_of_one_parent_are_sorted_by_a_field(
    path: str, roots: list[str], inside: list[str], queue: Queue
) -> None:
    found = queue.json("--sort-by", path, objects=teams())
    assert [each["name"] for each in found["roots"]] == roots
    (fleet,) = [each for each in found["roots"] if each["name"] == "fleet"]
    assert [each["name"] for each in fleet["children"]] == inside


def test_a_field_that_queues_do_not_have_names_the_fields(queue: Queue) -> None:
    line = queue.wrong("--sort-by", ".nmae", objects=teams())
    assert re.search(r'--sort-by: ".nmae" is no field .*kind, name, quotas, waiting', line)
    assert 'selector "a in"' in queue.wrong("-l", "a in", objects=teams())


def test_files_cannot_be_watched(queue: Queue) -> None:
    assert "--watch: files do not change" in queue.wrong("-w", objects=teams())


def test_labels_that_no_queue_has_are_a_line_on_stderr(
    queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["queue", "-f", as_file(tmp_path, *teams()), "-l", "team=x"]) == 0
    assert capsys.readouterr() == ("", "no queues with the labels team=x found\n")
    assert queue.json("-l", "team=x", objects=teams())["roots"] == []
    assert main(["top", "-f", as_file(tmp_path, *teams()), "-l", "team=x"]) == 0
    assert capsys.readouterr() == ("", "no nodes with the labels team=x found\n")


def test_a_watch_prints_the_queues_again_when_they_are_others(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownText()
    for text in ("a\n", "a\n", "b\n"):
        shown.show(partial(_write, text))
    assert capsys.readouterr().out == "a\n\nb\n"


def _write(text: str) -> None:
    sys.stdout.write(text)
