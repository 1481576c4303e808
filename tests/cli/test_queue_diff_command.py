"""`shoal queue diff`: two sets of manifests, and who would start, stop or wait longer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import RECLAIMS, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, pod
from build.other_queues import KAI_QUEUE, kai_queue, vgroup, volcano_queue
from build.queue_manifests import flavor
from docs.pages import ROOT
from shoal.cli.main import main

LATE = "2026-01-01T01:00:00Z"


class Command:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def run(self, now: list[Object], proposed: list[Object], *options: str) -> str:
        files = [
            as_file(self._folder, *objects, name=f"{name}.json")
            for name, objects in (("now", now), ("proposed", proposed))
        ]
        code = main(["queue", "diff", *(word for file in files for word in ("-f", file)), *options])
        out, err = self._capsys.readouterr()
        assert code == 0, err
        return out

    def json(self, now: list[Object], proposed: list[Object]) -> Any:
        return json.loads(self.run(now, proposed, "-o", "json"))

    def changes(self, now: list[Object], proposed: list[Object]) -> dict[str, str]:
        return {each["workload"]: each["change"] for each in self.json(now, proposed)["changes"]}


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def now() -> list[Object]:
    """One runs for two hours since one, the next has to wait for it."""
    held = gpu_workload("t/held", 1, 8, "f", lasts="2h")
    return [node("n", 16), flavor(), *gpu_queue("t", gpus(8)), held, gpu_workload("t/next", 1, 8, at=LATE)]


def test_more_quota_lets_somebody_start_sooner(command: Command) -> None:
    document = command.json(now(), gpu_queue("t", gpus(16)))
    (change,) = document["changes"]
    assert (change["workload"], change["queue"], change["change"]) == ("t/next", "t/q", "starts sooner")
    assert change["now"] == {"running": False, "startsAfter": 3600.0, "stops": []}
    assert change["proposed"]["startsAfter"] == 0.0
    assert (document["unchanged"], document["complete"]) == (1, True)


def test_less_quota_lets_somebody_wait_for_ever(command: Command) -> None:
    assert command.changes(now(), gpu_queue("t", gpus(4))) == {"t/next": "waits on"}
    assert command.changes([*now()[:2], *gpu_queue("t", gpus(4)), *now()[4:]], gpu_queue("t", gpus(8))) == {
        "t/next": "starts"
    }


def test_work_of_unknown_duration_runs_on(command: Command) -> None:
    world = [*now()[:4], gpu_workload("t/held", 1, 8, "f"), gpu_workload("t/next", 1, 8, at=LATE)]
    assert command.changes(world, gpu_queue("t", gpus(16))) == {"t/next": "starts"}


def test_whoever_would_have_to_make_room_stops(command: Command) -> None:
    lender, borrower = gpu_queue("a", gpus(8), cohort="c"), gpu_queue("b", gpus(0), cohort="c")
    work = [gpu_workload("b/old", 1, 8, "f"), gpu_workload("a/new", 1, 8, at=LATE)]
    world = [node("n", 8), flavor(), *lender, *borrower, *work]
    proposed = gpu_queue("a", gpus(8), cohort="c", preemption=RECLAIMS)
    document = command.json(world, proposed)
    changes = {each["workload"]: each for each in document["changes"]}
    assert {key: each["change"] for key, each in changes.items()} == {"a/new": "starts", "b/old": "stops"}
    stop = {"after": 0.0, "for": "a/new", "reason": "InCohortReclamation", "back": None}
    assert changes["b/old"]["proposed"]["stops"] == [stop]
    back = {
        each["workload"]: each["change"]
        for each in command.json([*world[:2], *proposed, *world[4:]], lender)["changes"]
    }
    assert back == {"a/new": "waits on", "b/old": "runs on"}


def test_the_table_tells_losses_first_and_spans_in_words(command: Command) -> None:
    text = command.run(now(), gpu_queue("t", gpus(16)))
    assert text.splitlines()[0] == "1 would start sooner, 1 as before"
    assert text.splitlines()[-1].split("  ")[0] == "t/next"
    assert "in 1 h" in text
    assert "at once" in text


def test_a_proposal_of_a_whole_world_is_taken_as_it_is(command: Command) -> None:
    proposed = [*now()[:2], *gpu_queue("t", gpus(16)), now()[4], gpu_workload("t/other", 1, 8)]
    document = command.json(now(), proposed)
    assert (document["onlyNow"], document["onlyProposed"]) == (["t/next"], ["t/other"])
    assert document["changes"] == []


def test_the_same_twice_changes_nothing(command: Command) -> None:
    assert command.run(now(), now()) == "2 as before\n"


@pytest.mark.parametrize("times", [0, 1, 3])
def test_any_number_but_two_is_refused(
    times: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: Command
) -> None:
    file = as_file(tmp_path, *now())
    assert main(["queue", "diff", *["-f", file] * times]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "give it twice: -f NOW -f PROPOSED" in err


def test_manifests_without_queues_are_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [as_file(tmp_path, node("n", 8), name="bare.json"), as_file(tmp_path, *now(), name="now.json")]
    assert main(["queue", "diff", "-f", files[0], "-f", files[1]]) == 2
    assert "bare.json: holds no queues" in capsys.readouterr().err


def test_the_page_shows_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    line = "queue diff -f examples/manifests/queues.yaml -f examples/manifests/queues-proposed.yaml"
    assert main(line.split()) == 0
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"$ shoal {line}\n{shown}\n```" in page
    assert f"$ shoal {line}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", ["60", "80", "100"])
def test_no_word_of_the_table_is_cut_off(width: str, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    long = gpu_workload("t/a-name-of-some-length", 1, 8, at="2026-01-01T00:30:00Z", lasts="3h30m")
    monkeypatch.setenv("COLUMNS", width)
    words = command.run([*now(), long], gpu_queue("t", gpus(16))).split()
    monkeypatch.setenv("COLUMNS", "400")
    assert set(command.run([*now(), long], gpu_queue("t", gpus(16))).split()) <= {*words, "t/a-name-of-some-length"}


def test_an_empty_proposal_is_no_proposal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    here = as_file(tmp_path, *now(), name="now.json")
    assert main(["queue", "diff", "-f", here, "-f", str(tmp_path / "empty.yaml")]) == 2
    assert "empty.yaml" in capsys.readouterr().err


def test_without_nodes_quota_alone_is_compared_and_hundreds_take_a_moment(command: Command) -> None:
    queues = [each for number in range(4) for each in gpu_queue(f"t{number}", gpus(8), cohort="c", preemption=RECLAIMS)]
    work = [gpu_workload(f"t{number % 4}/w{number}", 1 + number % 3, 2, lasts="1h") for number in range(200)]
    begun_s = time.process_time()
    document = command.json([flavor(), *queues, *work], gpu_queue("t0", gpus(4), cohort="c", preemption=RECLAIMS))
    assert time.process_time() - begun_s < 15, "it took half a minute when pods were tried again in every round"
    assert document["changes"]
    assert document["unchanged"] + len(document["changes"]) == len(work), "everybody is counted once"


def test_all_invalid_objects_of_both_files_are_reported_and_the_others_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [{**flavor(f"wrong-{at}"), "spec": {"nodeLabels": at}} for at in range(3)]
    files = [
        as_file(tmp_path, *now(), *wrong[:2], name="now.json"),
        as_file(tmp_path, *gpu_queue("t", gpus(16)), wrong[2], name="proposed.json"),
    ]
    assert main(["queue", "diff", "-f", files[0], "-f", files[1], "-o", "json"]) == 2
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in err.splitlines()] == ["shoal"] * 3
    assert all(f"wrong-{at}" in err for at in range(3))
    assert [each["change"] for each in json.loads(out)["changes"]] == ["starts sooner"]


# -- queues of Volcano and KAI --------------------------------------------------------------------------------------

GROUP = {"scheduling.k8s.io/group-name": "g"}


def kai_world(team: Object, other: Object) -> list[Object]:
    """The other team runs on all four GPUs; a job of the team waits."""
    old = [pod(f"t/old-{at}", 1, on="n", labels={KAI_QUEUE: "other"}) for at in range(4)]
    return [node("n", 4), team, other, *old, pod("t/new", 2, labels={KAI_QUEUE: "team"})]


def test_a_quota_of_kai_lets_a_job_start_and_stops_what_is_beyond_the_others(command: Command) -> None:
    world = kai_world(kai_queue("team", quota=0), kai_queue("other", quota=4))
    document = command.json(world, [kai_queue("team", quota=2), kai_queue("other", quota=2)])
    changes = {each["workload"]: each for each in document["changes"]}
    assert {key: each["change"] for key, each in changes.items()} == {
        "t/new": "starts",
        "t/old-2": "stops",
        "t/old-3": "stops",
    }
    stop = {"after": 0.0, "for": "t/new", "reason": "Preempted", "back": None}
    assert changes["t/old-3"]["proposed"]["stops"] == [stop]
    assert (changes["t/new"]["queue"], document["unchanged"], document["complete"]) == ("team", 2, True)


def kai_times(limit: float) -> list[Object]:
    """One job has two of four GPUs for two hours since one; another needs two for half an hour, a third all four."""
    lasts = {"old": "2h", "next": "30m", "all": "1h"}
    notes = {name: {"shoal.dev/expected-duration": length} for name, length in lasts.items()}
    labels, status = {KAI_QUEUE: "team"}, {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    old = pod("t/old", 2, on="n", labels=labels, annotations=notes["old"], status=status)
    waiting = [
        pod(f"t/{name}", gpus, labels=labels, annotations=notes[name]) for name, gpus in (("next", 2), ("all", 4))
    ]
    for at, each in enumerate(waiting):
        each["metadata"]["creationTimestamp"] = f"2026-01-01T0{at + 1}:00:00Z".replace("T02", "T01")
    return [node("n", 4), kai_queue("team", quota=4, limit=limit), old, *waiting]


def test_jobs_of_kai_end_when_their_expected_durations_are_up_and_let_others_start(command: Command) -> None:
    document = command.json(kai_times(2), [kai_queue("team", quota=4, limit=4)])
    changes = {each["workload"]: each for each in document["changes"]}
    assert {key: each["change"] for key, each in changes.items()} == {"t/all": "starts", "t/next": "starts sooner"}
    assert changes["t/next"]["now"]["startsAfter"] == 3600.0
    assert changes["t/next"]["proposed"]["startsAfter"] == 0.0
    assert changes["t/all"]["proposed"]["startsAfter"] == 3600.0
    assert document["complete"]


def test_a_group_of_volcano_starts_when_another_has_ended(command: Command) -> None:
    def world(capability: int) -> list[Object]:
        found = volcano_world(capability)
        for each in found:
            if each["metadata"]["name"] == "g-0":
                each["metadata"]["annotations"] = {**GROUP, "shoal.dev/expected-duration": "90m"}
                each["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        return found

    (change,) = command.json(world(3), [volcano_queue("small", 4)])["changes"]
    assert (change["workload"], change["change"]) == ("t/h", "starts sooner")
    assert change["now"]["startsAfter"] > 0


def volcano_world(capability: int) -> list[Object]:
    runs = vgroup("t/g", 1, "small", "Running") | {"metadata": {"namespace": "t", "name": "g"}}
    waits = vgroup("t/h", 2, "small")
    pods = [pod(f"t/h-{at}", 1, annotations={"scheduling.k8s.io/group-name": "h"}) for at in range(2)]
    return [
        node("n", 4),
        volcano_queue("small", capability),
        runs,
        pod("t/g-0", 2, on="n", annotations=GROUP),
        waits,
        *pods,
    ]


def test_a_capability_of_volcano_lets_a_group_start(command: Command) -> None:
    assert command.changes(volcano_world(3), [volcano_queue("small", 4)]) == {"t/h": "starts"}
    assert command.changes(volcano_world(4), [volcano_queue("small", 3)]) == {"t/h": "waits on"}
    assert command.run(volcano_world(4), volcano_world(4)) == "2 as before\n"


def test_queues_of_several_projects_are_compared_together(command: Command) -> None:
    kai = kai_world(kai_queue("team", quota=4), kai_queue("other", quota=4, limit=4))
    world = [node("n", 24), *now()[1:], *kai[1:], pod("t/more", 1, labels={KAI_QUEUE: "other"})]
    proposed = [*gpu_queue("t", gpus(16)), kai_queue("other", quota=5)]
    assert command.changes(world, proposed) == {"t/next": "starts sooner", "t/more": "starts"}


def test_queues_of_one_name_in_two_projects_are_two_queues(command: Command) -> None:
    world = [*volcano_world(4), kai_queue("small", quota=4)]
    assert command.changes(world, [volcano_queue("small", 3)]) == {"t/h": "waits on"}
