"""`shoal bundle` writes one private file with objects, Events and a diagnosis, and none of the planted secrets."""

from __future__ import annotations

import asyncio
import io
import json
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.cluster_api import Api
from build.cluster_server import ServerProcess
from shoal.cli.main import main

PLANTED = "PLANTEDzq8vK2mPx9LtR4wN"
OWN = {"app.kubernetes.io/name": "shoal"}


async def _plant(kubeconfig: Path) -> None:
    async with Api.open(kubeconfig) as api:
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": PLANTED, "team/note": f"token={PLANTED}"}
        container = {
            "name": "c",
            "image": "x",
            "env": [{"name": "HF", "value": PLANTED}],
            "args": [f"--token={PLANTED}"],
        }
        meta = {"name": "shoal-0", "namespace": "default", "labels": OWN, "annotations": annotations}
        core = "/api/v1/namespaces/default"
        (await api.post(f"{core}/pods", {"metadata": meta, "spec": {"containers": [container]}})).ok(201)
        data = {"values.yaml": f"registry:\n  password: {PLANTED}\nport: 80\n"}
        (await api.post(f"{core}/configmaps", {"metadata": {"name": "c", "labels": OWN}, "data": data})).ok(201)
        (await api.post(f"{core}/secrets", {"metadata": {"name": "s"}, "stringData": {"x": PLANTED}})).ok(201)
        about = {"kind": "Pod", "name": "shoal-0", "namespace": "default"}
        event = {
            "metadata": {"name": "e"},
            "involvedObject": about,
            "reason": "Failed",
            "message": f"pull from https://user:{PLANTED}@registry/x failed with Bearer {PLANTED}",
        }
        (await api.post(f"{core}/events", event)).ok(201)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("bundle"), "--authorization", "rbac")
    try:
        asyncio.run(_plant(process.kubeconfig))
        yield process
    finally:
        process.stop()


def _read(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        found = {}
        for info in tar.getmembers():
            data = tar.extractfile(info)
            assert data is not None
            found[info.name.partition("/")[2]] = data.read()
        return found


def test_a_bundle_has_what_support_needs_and_no_secret(server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    assert main(["bundle", "--file", str(file), "--kubeconfig", str(server.kubeconfig)]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = _read(file)
    assert found.keys() >= {
        *("contents.json", "shoal.json", "versions.json", "components.json", "configuration.json"),
        *("events.json", "doctor.json", "check.json", "snapshot.json"),
    }
    assert [name for name, data in found.items() if PLANTED.encode() in data] == []
    events: list[Any] = json.loads(found["events.json"])
    assert [one["reason"] for one in events if one["metadata"]["name"] == "e"] == ["Failed"]
    assert "port: 80" in json.loads(found["configuration.json"])[0]["data"]["values.yaml"]
    assert json.loads(found["versions.json"])["server"]["gitVersion"].startswith("v1.36")


def test_no_secret_is_asked_for(server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A user who may read nothing gets a bundle that names each refusal: none is about Secrets."""
    file = tmp_path / "b.tar.gz"
    user = ("--as", "stranger", "--as-group", "system:authenticated")
    assert main(["bundle", "--file", str(file), "--kubeconfig", str(server.kubeconfig), *user]) == 0
    left_out = json.loads(_read(file)["contents.json"])["leftOut"]
    assert {one["name"] for one in left_out} >= {
        "components.json",
        "configuration.json",
        "events.json",
        "snapshot.json",
    }
    assert not [one for one in left_out if "secrets" in one["why"]]
    assert "left out: snapshot.json" in capsys.readouterr().err


def test_the_limit_holds(server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    where = ("--kubeconfig", str(server.kubeconfig))
    assert main(["bundle", "--file", str(file), "--max-size", "1", "--no-logs", *where]) == 0
    found = _read(file)
    del found["contents.json"]
    assert 0 < sum(map(len, found.values())) <= 1 << 20
    assert not [name for name in found if name.startswith("logs/")]


def test_a_file_that_cannot_be_written_is_told_before_the_cluster_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bundle", "--file", str(tmp_path / "none" / "b.tar.gz")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_an_archive_is_a_tar_of_one_folder(server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    assert main(["bundle", "--file", str(file), "--kubeconfig", str(server.kubeconfig)]) == 0
    with tarfile.open(fileobj=io.BytesIO(file.read_bytes())) as tar:
        assert len({name.partition("/")[0] for name in tar.getnames()}) == 1


def test_doctor_and_check_read_a_bundle_as_they_read_the_cluster(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, access = str(tmp_path / "b.tar.gz"), ("--kubeconfig", str(server.kubeconfig))
    assert main(["bundle", "--file", file, *access]) == 0
    capsys.readouterr()
    for command in ("doctor", "check"):
        answers = []
        for source in (("-f", file), access):
            main([command, *source, "-o", "json"])
            answers.append(json.loads(capsys.readouterr().out))
        assert answers[0].keys() >= {"causes"} or answers[0].keys() >= {"items"}
        assert {key: value for key, value in answers[0].items() if key != "cluster"} == {
            key: value for key, value in answers[1].items() if key != "cluster"
        }


def test_a_bundle_beside_other_files_is_wrong_input(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "-f", "a.tar.gz", "-f", "b.yaml"]) == 2
    assert "is a bundle beside other files" in capsys.readouterr().err
