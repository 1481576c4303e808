"""`shoal cost backfill`: files of kubectl become a history, whose costs have a part that is unknown."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.main import main
from shoal.store.history.file_tables import open_for_writing


def _file(folder: Path, at: str, *, has_pod: bool) -> None:
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-10-01T00:00:00Z"}
    labels = {"node.kubernetes.io/instance-type": "dgx-h100", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "uid": "n", "creationTimestamp": "2026-10-01T00:00:00Z", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-10-01T06:00:00Z"}
    pods: list[dict[str, Any]] = [
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": space, "uid": name, "creationTimestamp": "2026-10-01T06:00:00Z"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": limits}}]},
            "status": {"phase": "Running", "conditions": [bound]},
        }
        for name, space, limits in (("agent", "kube-system", {}), ("train", "red", {"nvidia.com/gpu": "4"}))
        if has_pod or name == "agent"
    ]
    event = {"kind": "Event", "metadata": {"name": "e"}, "lastTimestamp": "2026-10-01T06:00:00Z"}
    (folder / f"{at}.json").write_text(json.dumps({"kind": "List", "items": [node, *pods, event]}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "snapshots").mkdir()
    for at, has_pod in (("06:00:00", True), ("07:00:00", True), ("08:00:00", False)):
        _file(tmp_path / "snapshots", f"2026-10-01T{at}Z", has_pod=has_pod)
    (tmp_path / "prices.yaml").write_text("machines:\n- {instanceType: dgx-h100, perHour: '40.00'}\n")
    return tmp_path


def test_files_become_a_history_whose_parts_add_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = ["--history", str(folder / "history")]
    assert main(["cost", "backfill", "-f", str(folder / "snapshots"), *history]) == 0
    out, _ = capsys.readouterr()
    assert "3 files, from 2026-10-01T06:00:00Z to 2026-10-01T08:00:00Z: 2 pods and 1 nodes" in out
    assert "1.00 of 2.00 hours are known; the others stay unknown" in out
    assert "1 pods ended, and no Event says when" in out
    window = ["--window", "2026-10-01T05:00:00Z,2026-10-01T08:00:00Z", "--prices", str(folder / "prices.yaml")]
    assert main(["cost", "-o", "json", *window, *history]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    amounts = [one["amounts"] for one in found["groups"] if one["group"] == "red"]
    assert amounts == [{"startup": "19.00"}]
    assert Decimal(found["unknownHours"]) == 2
    parts = [Decimal(one["total"]) for one in found["groups"]] + [Decimal(one) for one in found["others"].values()]
    assert sum(parts) == Decimal(found["total"]) == 120
    assert Decimal(found["others"]["unknown"]) >= 60
    assert "the history begins at 2026-10-01T06:00:00Z" in err


def test_what_was_written_is_printed_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["cost", "backfill", "-f", str(folder / "snapshots"), "--history", str(folder / "history"), "-o", "json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["snapshots"], found["holdings"], found["lostPods"], found["knownMs"]) == (3, 2, 1, 3_600_000)


def test_what_cannot_be_read_or_written_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    for words, said, code in (
        (["-f", str(folder / "empty")], "empty: has no file *.json", 2),
        (["-f", str(folder / "gone.json")], "gone.json: cannot be read", 2),
        (["-f", str(folder / "prices.yaml")], "prices.yaml: is no list of objects as JSON", 2),
        ([], "--filename", 2),
    ):
        assert main(["cost", "backfill", *words, "--history", str(folder / "history")]) == code
        assert said in capsys.readouterr().err
    assert not (folder / "history").exists()
    writing = open_for_writing(folder / "history")
    assert main(["cost", "backfill", "-f", str(folder / "snapshots"), "--history", str(folder / "history")]) != 0
    assert "another process writes the history" in capsys.readouterr().err
    writing.close()
