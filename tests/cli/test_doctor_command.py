"""`shoal doctor` finds the cause in files, snapshots, logs and metrics, and says what it could not check."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.cluster_server import ServerProcess
from build.diagnosed_clusters import gpu_node, running, waiting
from build.manifests import as_file
from shoal.cli.main import main

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity)\n"


class Doctor:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.err = ""

    def run(self, *arguments: str, code: int) -> str:
        found = main(["doctor", *arguments])
        out, self.err = self._capsys.readouterr()
        assert found == code, self.err
        return out

    def json(self, *arguments: str, code: int) -> Any:
        return json.loads(self.run(*arguments, "-o", "json", code=code))

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    monkeypatch.setenv("COLUMNS", "100")
    return Doctor(tmp_path, capsys)


def test_a_cause_has_its_evidence_its_fix_and_a_command_and_the_code_is_1(doctor: Doctor) -> None:
    world = as_file(doctor.folder, waiting(gpus=16), gpu_node())
    out = doctor.run("pod", "train", "-f", world, code=1)
    assert out.startswith("1. pod team/train: the pod asks for 16 nvidia.com/gpu, and no node has more than 8")
    assert "   fix: ask for at most 8 in one pod" in out
    assert "Ruled out:" in out
    assert "Not checked:" in out


def test_without_a_cause_the_code_is_0(doctor: Doctor) -> None:
    world = as_file(doctor.folder, running("train"), gpu_node())
    assert "no known cause was found" in doctor.run("node", "gpu-1", "-f", world, code=0)


@pytest.mark.parametrize("words", [("pod", "team/train"), ("pod/train",), ("pod", "train", "-n", "team")])
def test_a_pod_is_named_in_several_ways(doctor: Doctor, words: tuple[str, ...]) -> None:
    world = as_file(doctor.folder, waiting(), gpu_node(), running("other"))
    assert doctor.json(*words, "-f", world, code=1)["causes"][0]["id"] == "GpusInUse"


def test_wrong_subjects_end_with_2_and_say_what_was_meant(doctor: Doctor) -> None:
    world = as_file(doctor.folder, waiting(), gpu_node())
    doctor.run("pod", "trian", "-f", world, code=2)
    assert "did you mean train?" in doctor.err
    doctor.run("nodes", "x", "-f", world, code=2)
    assert "node" in doctor.err
    doctor.run("node", "-f", world, code=2)
    assert "write node NAME" in doctor.err
    doctor.run("cluster", "x", "-f", world, code=2)
    assert "2 words are given" in doctor.err


def test_a_name_in_two_namespaces_needs_one(doctor: Doctor) -> None:
    other = waiting()
    other["metadata"]["namespace"] = "lab"
    doctor.run("pod", "train", "-f", as_file(doctor.folder, waiting(), other), code=2)
    assert "lab, team" in doctor.err


def test_a_log_is_read_alone_from_a_file_or_stdin(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.json("--log", doctor.write("a.log", OOM), code=1)
    assert [cause["id"] for cause in found["causes"]] == ["CudaOutOfMemory"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"epoch 1 done\n\xff\n")))
    assert "the log contains no known message" in doctor.run("--log", "-", code=0)


def test_a_log_of_a_pod_is_evidence_about_the_pod(doctor: Doctor) -> None:
    done = running("train")
    done["status"] = {
        "phase": "Failed",
        "containerStatuses": [{"name": "c", "ready": False, "state": {"terminated": {"exitCode": 1}}}],
    }
    log = doctor.write("a.log", OOM)
    found = doctor.json("pod", "train", "-f", as_file(doctor.folder, done), "--log", log, code=1)
    assert found["causes"][0]["subject"] == "pod team/train"
    assert not [each for each in found["notRun"] if each["check"] == "its log"]


def test_the_cluster_is_judged_without_a_subject(doctor: Doctor) -> None:
    world = as_file(doctor.folder, waiting(gpus=16), gpu_node())
    found = doctor.json("-f", world, code=1)
    assert found["subject"] == "cluster"
    assert [cause["id"] for cause in found["causes"]] == ["RequestLargerThanNodes"]


def test_files_without_objects_and_missing_files_are_wrong_input(doctor: Doctor) -> None:
    doctor.run("-f", doctor.write("a.yaml", "a: 1\n"), code=2)
    assert "contain no object" in doctor.err
    doctor.run("--log", str(doctor.folder / "none.log"), code=2)
    assert "No such file" in doctor.err


def test_what_the_scheduler_decides_is_explained_where_no_mistake_is_known(doctor: Doctor) -> None:
    wants = waiting(limits={"cpu": 100})
    found = doctor.json("pod", "train", "-f", as_file(doctor.folder, wants, gpu_node()), code=1)
    (cause,) = found["causes"]
    assert cause["id"] == "Insufficient"
    assert "nodes: 1  Insufficient cpu" in cause["evidence"]
    assert cause["commands"][-1] == "shoal why pod/train -n team"


def test_a_pod_that_has_a_place_has_no_cause(doctor: Doctor) -> None:
    doctor.run("pod", "train", "-f", as_file(doctor.folder, waiting(), gpu_node()), code=0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    server = ServerProcess(tmp_path_factory.mktemp("diagnosed"), "--memory", "--authorization", "rbac")
    yield server.kubeconfig
    server.stop()


def test_a_cluster_is_read_and_what_may_not_be_read_is_not_checked(doctor: Doctor, cluster: Path) -> None:
    access = ("--kubeconfig", str(cluster))
    found = doctor.json(*access, code=0)
    assert "0 of 0 nodes have no known problem" in [each["what"] for each in found["ruledOut"]]
    stranger = doctor.json(*access, "--as", "stranger", code=0)
    assert not stranger["ruledOut"]
    assert any("forbidden" in each["why"] for each in stranger["notRun"])


def test_a_pod_of_a_cluster_is_not_found(doctor: Doctor, cluster: Path) -> None:
    doctor.run("pod", "train", "--kubeconfig", str(cluster), code=2)
    assert "there is no pod default/train" in doctor.err
