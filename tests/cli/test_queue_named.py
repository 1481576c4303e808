"""`shoal queue NAME`: one part of the quota tree, with the workloads in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import as_file, node
from build.queue_manifests import flavor
from shoal.cli.main import main


@pytest.fixture
def teams(tmp_path: Path) -> str:
    """Two queues of one cohort; one workload holds quota in `b`, one job waits in `a`."""
    queues = [*gpu_queue("a", gpus(8), cohort="fleet"), *gpu_queue("b", gpus(8), cohort="fleet")]
    return as_file(
        tmp_path, node("n", 8), flavor(), *queues, gpu_workload("b/held", 3, 4, "f"), gpu_job("a/one", 1, 16)
    )


class Asked:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def text(self, *arguments: str, code: int = 0) -> str:
        assert main(["queue", *arguments]) == code
        out, err = self._capsys.readouterr()
        return out if code == 0 else err

    def json(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "-o", "json"))


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(capsys)


def test_a_name_may_stand_before_or_behind_the_options(teams: str, asked: Asked) -> None:
    first = asked.text("b", "-f", teams)
    assert asked.text("-f", teams, "b") == first == asked.text("--name", "b", "-f", teams)


def test_of_a_cluster_queue_nothing_else_is_shown(teams: str, asked: Asked) -> None:
    found = asked.json("cq/b", "-f", teams)
    assert [root["name"] for root in found["roots"]] == ["b"]
    assert [each["workload"] for each in found["workloads"]["holding"]] == ["b/held"]
    assert found["workloads"]["waiting"] == []


def test_a_local_queue_is_shown_below_the_one_that_has_its_quota(teams: str, asked: Asked) -> None:
    found = asked.json("a/q", "-f", teams)
    assert [(root["name"], [child["name"] for child in root["children"]]) for root in found["roots"]] == [
        ("a", ["a/q"])
    ]
    assert [each["workload"] for each in found["workloads"]["waiting"]] == ["a/job-one"]


def test_a_bare_local_queue_is_looked_for_in_the_namespace(teams: str, asked: Asked) -> None:
    assert '"q" is the name of several; say localqueue/a/q or localqueue/b/q' in asked.text("q", "-f", teams, code=2)
    assert asked.text("q", "-n", "a", "-f", teams) == asked.text("a/q", "-f", teams)


def test_a_cohort_has_everything_below_it(teams: str, asked: Asked) -> None:
    found = asked.json("fleet", "-f", teams)
    assert [each["workload"] for each in found["workloads"]["holding"]] == ["b/held"]
    assert [each["workload"] for each in found["workloads"]["waiting"]] == ["a/job-one"]


def test_a_name_that_nobody_has_offers_what_comes_near(teams: str, asked: Asked) -> None:
    assert "did you mean fleet?" in asked.text("fleets", "-f", teams, code=2)


def test_the_commands_of_the_group_are_still_there(teams: str, asked: Asked) -> None:
    assert asked.text("diff", "-f", teams, "-f", teams)


def test_yaml_says_what_json_says(teams: str, asked: Asked) -> None:
    import msgspec

    assert msgspec.yaml.decode(asked.text("b", "-f", teams, "-o", "yaml")) == asked.json("b", "-f", teams)


def test_a_local_queue_of_another_namespace_is_not_found_in_the_one_that_is_named(teams: str, asked: Asked) -> None:
    words = asked.text("lq/q", "-f", teams, "-n", "c", code=2)
    assert 'local queue "q" not found in namespace c; it exists in a, b: use -n a' in words
    assert [root["name"] for root in asked.json("lq/q", "-f", teams, "-n", "b")["roots"]] == ["b"]
