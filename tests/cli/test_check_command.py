"""`shoal check` reports each item with evidence and fix, in every format, and corrects what is safe to correct."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.diagnosed_clusters import gpu_node
from build.manifests import as_file, job
from build.ready_clusters import METRICS, bare, ready
from shoal.cli.main import main
from shoal.cli.recorded_history import recorded_history
from shoal.client.clock import WallClock
from shoal.client.http.access import Access
from shoal.embedded.apiserver.security.state_folder import Running, claim
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges


def test_a_report_names_what_to_correct_and_the_code_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-f", as_file(tmp_path, *bare())]) == 1
    out = capsys.readouterr().out
    assert "gpu-taints" in out
    assert "$ kubectl taint node gpu-1 nvidia.com/gpu=present:NoSchedule" in out
    assert "not run" in out


def test_a_ready_cluster_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = tmp_path / "metrics.txt"
    metrics.write_text(METRICS)
    code = main(["check", "-f", as_file(tmp_path, *ready()), "--metrics", str(metrics), "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert report["counts"]["fail"] == 0
    assert {"id", "section", "title", "state", "evidence", "fix", "commands"} <= report["items"][0].keys()


def test_a_page_shows_text_of_objects_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = gpu_node("<script>alert(1)</script>")
    assert main(["check", "-f", as_file(tmp_path, *bare(), odd), "-o", "html"]) == 1
    page = capsys.readouterr().out
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--fix",), "is for a cluster, not for files"), (("-o", "pdf"), "html")],
)
def test_wrong_options_end_with_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "-f", as_file(tmp_path, *bare()), *arguments]) == 2
    assert message in capsys.readouterr().err


def costs_item(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    main(["check", *arguments, "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    return next(item for item in report["items"] if item["id"] == "idle-cost")


def history_in(folder: Path) -> Path:
    history = open_history(folder)
    history.ledger.write(LedgerChanges(round(WallClock().seconds() * 1000), {}))
    history.close()
    return folder


def test_a_history_in_a_folder_records_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = as_file(tmp_path, *bare())
    assert costs_item(capsys, "-f", objects)["state"] == "manual"
    folder = history_in(tmp_path / "history")
    assert costs_item(capsys, "-f", objects, "--history", str(folder))["state"] == "pass"
    assert main(["check", "-f", objects, "--history", str(tmp_path / "none")]) == 2
    assert "has no history" in capsys.readouterr().err


def test_the_history_of_shoal_up_is_found_for_its_own_cluster_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    mine, other = Access("https://127.0.0.1:6443", "mine"), Access("https://127.0.0.1:6444", "other")
    assert recorded_history(None, mine) is None
    with claim(tmp_path / "shoal") as lock:
        lock.announce(Running(os.getpid(), "https://127.0.0.1:6443", "", "1.36"))
        assert recorded_history(None, mine) is None
        folder = history_in(tmp_path / "shoal" / "history")
        found = recorded_history(None, mine)
        assert found is not None
        assert found.place == str(folder)
        assert recorded_history(None, other) is None


def test_objects_that_smoke_tests_left_are_no_part_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = job("shoal-smoke-test/distributed", 2, 8)
    assert main(["check", "-f", as_file(tmp_path, *ready(), left), "-o", "json"]) == 0
    assert "shoal-smoke-test" not in capsys.readouterr().out


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(
        tmp_path_factory.mktemp("check"), "--nodes", "none", "--authorization", "rbac", is_bare=False
    )
    yield process
    process.stop()


def test_a_live_cluster_is_corrected_and_checked_again(
    server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--kubeconfig", str(server.kubeconfig), "-o", "json")
    assert main(["check", *where]) == 1
    before = {item["id"]: item["state"] for item in json.loads(capsys.readouterr().out)["items"]}
    assert before["priorities"] == "fail"
    assert main(["check", "--fix", *where]) == 1
    out, err = capsys.readouterr()
    assert "applied WorkloadPriorityClass production" in err
    assert "PrometheusRule monitoring/shoal-alerts is not applied" in err
    after = {item["id"]: item["state"] for item in json.loads(out)["items"]}
    assert after["priorities"] == "pass"


def test_what_the_user_may_not_read_is_not_run(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--kubeconfig", str(server.kubeconfig), "--as", "stranger", "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert not {"pass", "fail"} & {item["state"] for item in items}
    drivers = next(item for item in items if item["id"] == "drivers")
    assert (drivers["state"], "forbidden" in drivers["evidence"][0]) == ("not run", True)
