"""`shoal queue`: the quota tree as a table that a person reads, and as one JSON document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, volcano_group
from build.queue_manifests import flavor
from docs.pages import ROOT
from shoal.cli.main import main

EXAMPLE = "examples/manifests/queues.yaml"
PAGE = ROOT / "docs" / "cli.md"


class Command:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.err = ""

    def text(self, *objects: Object, options: tuple[str, ...] = ()) -> str:
        code = main(["queue", "-f", as_file(self._folder, *objects), *options])
        out, self.err = self._capsys.readouterr()
        assert code == 0, self.err
        return out

    def json(self, *objects: Object, options: tuple[str, ...] = ()) -> Any:
        return json.loads(self.text(*objects, options=("-o", "json", *options)))


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def teams() -> list[Object]:
    """Two queues of eight; `b` uses twelve, and two jobs wait for `a`."""
    queues = [*gpu_queue("a", gpus(8), cohort="fleet"), *gpu_queue("b", gpus(8), cohort="fleet")]
    jobs = [gpu_job("a/one", 1, 4), gpu_job("a/two", 1, 8, "2026-01-02T00:00:00Z")]
    return [node("n", 8), node("n-1", 8), flavor(), *queues, gpu_workload("b/held", 3, 4, "f"), *jobs]


@pytest.mark.parametrize("is_used", [False, True])
def test_the_queues_that_volcano_makes_itself_are_shown_only_where_volcano_is_used(
    is_used: bool, command: Command
) -> None:
    made: list[Object] = [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}
        for name in ("root", "default")
    ]
    text = command.text(*teams(), *made, *([volcano_group("t/g", 1)] if is_used else []))
    assert ("queues of Volcano" in text) == is_used


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_the_first_line_says_how_much_is_used_and_how_many_wait(command: Command) -> None:
    first = command.text(*teams()).splitlines()[0]
    assert first == "2 cluster queues in 1 cohort, 12 of 16 GPUs used (4 borrowed), 2 waiting"


def test_the_table_has_a_line_per_flavor_and_resource(command: Command) -> None:
    found = rows(command.text(*teams()))
    assert ["cohort", "fleet", "2", "wait"] in found
    assert ["f", "GPUs", "16", "12", "·", "·", "·"] in found
    assert ["f", "GPUs", "8", "·", "·", "4", "12"] in found
    assert ["f", "GPUs", "8", "12", "4", "·", "·"] in found
    assert ["b", "25.0", "%"] in found


def test_a_queue_that_admits_nobody_says_why_below_the_table(command: Command) -> None:
    queue = gpu_queue("t", gpus(8), stopPolicy="Hold")
    assert "t admits no workloads: it is stopped\n" in command.text(flavor(), *queue)
    lost = gpu_queue("t", gpus(8))
    assert "from t/q admits no workloads: its ClusterQueue t does not exist\n" in command.text(flavor(), lost[1])
    assert "ClusterQueue t not found" in command.err


def test_who_holds_and_who_waits_is_told_on_request(command: Command) -> None:
    text = command.text(*teams(), options=("--workloads",))
    assert "b/held    b   12 GPUs of f" in text
    assert "a/job-one  4 GPUs  Admissible: It would be admitted now: its quota is free, and" in text
    assert "a/job-two  8 GPUs  WaitingForQuota: " in text
    assert "b/held" not in command.text(*teams())


def test_the_document_is_the_tree(command: Command) -> None:
    document = command.json(*teams())
    assert list(document) == ["roots", "astray", "missing", "waits", "preempted"]
    (fleet,) = document["roots"]
    assert (fleet["kind"], fleet["name"]) == ("cohort", "fleet")
    assert [child["name"] for child in fleet["children"]] == ["a", "b"]
    first, second = fleet["children"]
    assert first["quotas"] == [
        {
            "flavor": "f",
            "resource": "nvidia.com/gpu",
            "nominal": 8,
            "used": 0,
            "borrowed": 0,
            "lent": 4,
            "waiting": 12,
        }
    ]
    assert first["waiting"] == {"workloads": 2, "inadmissible": 0, "parked": 0, "amounts": {"nvidia.com/gpu": 12}}
    assert second["share"] == {"weighted": 250, "resource": "nvidia.com/gpu"}
    assert [child["name"] for child in second["children"]] == ["b/q"]


def test_the_document_lists_workloads_on_request(command: Command) -> None:
    listed = command.json(*teams(), options=("--workloads",))["workloads"]
    (holder,) = listed["holding"]
    assert (holder["workload"], holder["clusterQueue"], holder["state"]) == ("b/held", "b", "admitted")
    assert holder["holds"] == [{"flavor": "f", "resource": "nvidia.com/gpu", "amount": 12}]
    assert [(each["workload"], each["reason"]["code"]) for each in listed["waiting"]] == [
        ("a/job-one", "Admissible"),
        ("a/job-two", "WaitingForQuota"),
    ]


def test_behind_the_head_of_a_strict_queue_it_is_said_who_that_is(command: Command) -> None:
    queue = gpu_queue("t", gpus(4), queueingStrategy="StrictFIFO")
    jobs = [gpu_job("t/first", 1, 8), gpu_job("t/next", 1, 1, "2026-01-02T00:00:00Z")]
    listed = command.json(flavor(), *queue, *jobs, options=("--workloads",))["workloads"]["waiting"]
    reasons = {each["workload"]: each["reason"] for each in listed}
    assert reasons["t/job-next"]["message"] == "It is behind t/job-first in a StrictFIFO queue."
    assert reasons["t/job-first"]["code"] == "ExceedsMaxQuota"


def test_nothing_is_decided(command: Command) -> None:
    assert command.json(*teams(), options=("--workloads",))["roots"] == command.json(*teams())["roots"]


def test_the_order_of_the_manifests_does_not_matter(command: Command) -> None:
    assert command.text(*teams()) == command.text(*reversed(teams()))


LONG_FLAVOR = "nvidia-h100-80gb-hbm3-reserved-for-training"


def wide() -> list[Object]:
    """Long names, large numbers, and somebody who borrows and so has a share."""
    team = "research-language-modelling-and-speech"
    mine = gpu_queue(team, gpus(8_000, flavor=LONG_FLAVOR), cohort="company-wide-cohort")
    other = gpu_queue("vision", gpus(1_234_567, flavor=LONG_FLAVOR), cohort="company-wide-cohort")
    held = gpu_workload(f"{team}/held", 9_000, 1, LONG_FLAVOR)
    return [flavor(LONG_FLAVOR), *mine, *other, held, gpu_job(f"{team}/next", 1, 7_654_321)]


@pytest.mark.parametrize("width", [80, 120, None])
def test_every_number_is_whole_at_any_width(
    width: int | None, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    found = command.text(*wide(), options=("--workloads",)).splitlines()
    words = {word for line in found[1:] for word in line.split()}
    numbers = {"1,242,567", "9,000", "8,000", "1,234,567", "1,000", "7,654,321", "0.1"}
    assert {"quota", "used", "borrowed", "lent", "waiting", "share", *numbers} <= words
    if width is None:
        assert LONG_FLAVOR in words, "whoever searches a pipe for a name finds it"
    else:
        assert max(map(len, found[1:])) <= width


def test_a_narrow_terminal_breaks_no_line_and_says_what_it_has_no_room_for(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    found = command.text(*wide()).splitlines()
    assert max(map(len, found)) <= 60
    assert any(line.startswith("no room for: ") and line.endswith("lent") for line in found)
    assert {"9,000", "1,234,567"} <= {word for line in found for word in line.split()}


def test_the_page_shows_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["queue", "-f", EXAMPLE]) == 0
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert f"$ shoal queue -f {EXAMPLE}\n{shown}\n```" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig", "absent"], "absent: cannot be read"),
        (["-f", "examples/manifests/make-room.yaml"], "make-room.yaml: holds no queues"),
        (["-f", EXAMPLE, "-o", "jsn"], '--output: format "jsn" not found; did you mean json?'),
        (["-f", "absent.yaml"], "absent.yaml: cannot be read"),
        (["-f", EXAMPLE, "diff", "-f", EXAMPLE, "-f", EXAMPLE], "options of a command stand behind its name"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["queue", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


# -- whether those that have quota find places on the nodes ------------------------------------------------------------


def crowded() -> list[Object]:
    """Quota for all, and two nodes of eight GPUs: the first job fits on them, the second never will."""
    first = gpu_job("t/fits", 1, 8, at="2026-01-01T00:00:00Z")
    second = gpu_job("t/large", 6, 8, at="2026-01-02T00:00:00Z")
    return [node("n-0", 8), node("n-1", 8), flavor(), *gpu_queue("t", gpus(100)), first, second]


def workloads_listed(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    assert main([*words, "-f", as_file(folder, *crowded()), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    if words[0] == "get":
        return {each["workload"]: each for each in document["items"]}
    return {each["workload"]: each["reason"] for each in document["workloads"]["waiting"]}


@pytest.mark.parametrize("words", [("get", "workloads"), ("queue", "--workloads"), ("queue", "t")])
def test_a_workload_without_places_on_nodes_is_listed_with_the_reason_that_why_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    found = workloads_listed(tmp_path, capsys, *words)
    assert main(["why", "job/large", "-f", as_file(tmp_path, *crowded()), "-o", "json"]) == 0
    why = json.loads(capsys.readouterr().out)
    assert why["code"] == "TopologyPlacementFailed"
    assert found["t/job-large"]["code"] == why["code"]
    assert found["t/job-fits"]["code"] == "Admissible"
    assert found["t/job-fits"]["message"] == "It would be admitted now: its quota is free, and its pods find places."
