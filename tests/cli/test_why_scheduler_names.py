"""A pod whose `schedulerName` no scheduler has waits without a word from anything: `shoal why` and the list say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.manifests import Object, as_file, node, pod
from shoal.cli.main import main

CaptureFixture = pytest.CaptureFixture[str]
PENDING = {"phase": "Pending"}
CONSIDERED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}


def why(folder: Path, capsys: CaptureFixture, *objects: Object) -> str:
    assert main(["why", "t/p", "-f", as_file(folder, *objects)]) == 0
    return " ".join(capsys.readouterr().out.split())


def living() -> Object:
    made = node("n", 8)
    made["metadata"]["uid"] = "1"
    return made


def test_a_misspelled_scheduler_is_in_the_headline_with_the_name_that_was_meant(
    tmp_path: Path, capsys: CaptureFixture
) -> None:
    told = why(tmp_path, capsys, living(), pod("t/p", 1, status=PENDING, schedulerName="shaol"))
    assert told.startswith('t/p waits: no scheduler "shaol" has considered it; it would fit on n, GPU 0')
    assert "scheduler shaol has said nothing of it yet; did you mean shoal?" in told


def test_the_list_of_pods_says_the_same(tmp_path: Path, capsys: CaptureFixture) -> None:
    waiting = pod("t/p", 1, status=PENDING, schedulerName="shaol")
    assert main(["get", "pods", "-o", "json", "-f", as_file(tmp_path, living(), waiting)]) == 0
    (row,) = json.loads(capsys.readouterr().out)["items"]
    assert row["message"] == 'no scheduler "shaol" has considered it'


@pytest.mark.parametrize("name", ["shoal", "default-scheduler", "custom"])
def test_a_scheduler_that_places_pods_is_known(name: str, tmp_path: Path, capsys: CaptureFixture) -> None:
    other = pod("t/other", 1, status=CONSIDERED, schedulerName="custom", nodeSelector={"a": "b"})
    told = why(tmp_path, capsys, living(), other, pod("t/p", 1, status=PENDING, schedulerName=name))
    assert told.startswith("t/p waits: by now it fits, on n")
    assert f"{name} has said nothing of it yet; does it run?" in told
