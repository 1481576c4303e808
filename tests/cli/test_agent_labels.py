"""`shoal agent labels` prints the labels of a machine or writes them, with the settings of file and command line."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from build.served_planes import served_plane
from build.small_clusters import ADMIN
from shoal.cli.main import main
from shoal.client.kind import NODES
from shoal.client.port import Patch
from shoal.embedded.apiserver.inside.api import InsideApi

FAKE = ("agent", "labels", "--fake", "g5.12xlarge", "--no-timestamp")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    assert main([*FAKE, *words, "-o", "json"]) == 0
    labels: dict[str, str] = json.loads(capsys.readouterr().out)["labels"]
    return labels


def wrong(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*FAKE, *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_labels_are_lines_and_annotations_follow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FAKE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "nvidia.com/gpu.product=NVIDIA-A10G" in lines
    assert lines[-1] == "annotation shoal.dev/gpu-numa=0-3"
    assert not [line for line in lines if "gfd.timestamp" in line]


def test_the_strategy_of_the_command_line_comes_before_that_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "version: v1\nflags: {migStrategy: mixed, gfd: {machineTypeFile: /x}}\n"
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n"
    )
    from_file = printed(capsys, "--config", str(file))
    assert (from_file["nvidia.com/mig.strategy"], from_file["nvidia.com/gpu.replicas"]) == ("mixed", "4")
    both = printed(capsys, "--config", str(file), "--mig-strategy", "single")
    assert both["nvidia.com/mig.strategy"] == "single"


def test_the_variables_of_feature_discovery_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MIG_STRATEGY", "mixed")
    assert printed(capsys)["nvidia.com/mig.strategy"] == "mixed"


def test_what_the_file_has_in_vain_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("version: v1\nflags: {migStrateg: mixed}\n")
    assert main([*FAKE, "--config", str(file)]) == 0
    assert "flags.migStrateg: the device plugin has no such field and ignores it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--mig-strategy", "singel"), "did you mean single"),
        (("--write", "nodes"), "did you mean node"),
        (("--interval", "soon"), "--interval: time: invalid duration"),
        (("-o", "table"), '--output: format "table" not found'),
    ],
)
def test_a_wrong_option_is_one_line(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in wrong(capsys, *words)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: v2", "unknown version: v2"),
        ("version: v1\nflags: {migStrategy: both}", "unknown strategy: both"),
        ("version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 49}]}}", "replicas exceeded: 49 > 48"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_name(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    said = wrong(capsys, "--config", str(file))
    assert str(file) in said
    assert told in said


def test_mps_on_gpus_in_mig_mode_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}")
    assert main(["agent", "labels", "--fake", "dgx-h100[mig=all-1g.10gb]", "--config", str(file)]) == 2
    assert "not supported on nodes with MIG-enabled GPUs" in capsys.readouterr().err


def test_the_file_for_node_feature_discovery_remains_after_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gfd"
    command = [*FAKE, "--write", "nfd-file", "--output-file", str(file), "--once"]
    assert main(command) == 0
    assert capsys.readouterr().err.startswith(f"{file}: ")
    assert "nvidia.com/gpu.count=4\n" in file.read_text()
    assert main(command) == 0
    assert capsys.readouterr().err == "the labels are up to date\n"


async def agent(*words: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "shoal", *FAKE, *words]
    return await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)


async def first_line(process: asyncio.subprocess.Process, start: str) -> str:
    """The first line on standard error that begins so; what follows is left."""
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        if line.startswith(start):
            return line
    raise AssertionError(f"no line begins with {start}")


def test_the_labels_of_the_node_are_written_over_http_until_the_process_is_ended(tmp_path: Path) -> None:
    async def run() -> dict[str, str]:
        async with served_plane(tmp_path) as served:
            api = InsideApi(served.plane, ADMIN, "test")
            await api.create(NODES, {"metadata": {"name": "n1"}})
            process = await agent("--write", "node", "--node", "n1", "--kubeconfig", str(served.kubeconfig))
            assert "labels and annotations changed" in await first_line(process, "node n1: ")
            process.terminate()
            assert await process.wait() == 0
            labels: dict[str, str] = (await api.get(NODES, "", "n1")).obj()["metadata"]["labels"]
            return labels

    assert asyncio.run(run())["nvidia.com/gpu.product"] == "NVIDIA-A10G"


def test_a_node_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    async def run() -> tuple[int, str]:
        async with served_plane(tmp_path) as served:
            process = await agent("--write", "node", "--once", "--node", "n1", "--kubeconfig", str(served.kubeconfig))
            line = await first_line(process, "shoal: ")
            return await process.wait(), line

    code, line = asyncio.run(run())
    assert code == 2
    assert "the cluster has no node n1; name the node of this machine with --node" in line


def test_a_changed_configuration_file_is_followed_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    file, config = tmp_path / "gfd", tmp_path / "config.yaml"
    config.write_text("version: v1\n")

    async def run() -> None:
        words = ("--write", "nfd-file", "--output-file", str(file), "--config", str(config), "--interval", "100ms")
        process = await agent(*words)
        await first_line(process, f"{file}: ")
        config.write_text("version: v2\n")
        assert "unknown version: v2" in await first_line(process, str(config))
        assert "nvidia.com/gpu.replicas=1\n" in file.read_text()
        config.write_text("version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n")
        await first_line(process, f"{file}: ")
        assert "nvidia.com/gpu.replicas=4\n" in file.read_text()
        process.terminate()
        assert await process.wait() == 0

    asyncio.run(run())


def test_the_file_of_a_process_that_follows_the_driver_is_removed_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "gfd"

    async def run() -> None:
        process = await agent("--write", "nfd-file", "--output-file", str(file))
        await first_line(process, f"{file}: ")
        assert "nvidia.com/gpu.count=4\n" in file.read_text()
        process.terminate()
        assert await process.wait() == 0

    asyncio.run(run())
    assert not file.exists()


SLICED = "version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n"


def configurations(folder: Path) -> Path:
    folder.mkdir()
    (folder / "default").write_text("version: v1\n")
    (folder / "sliced").write_text(SLICED)
    return folder


def test_of_a_folder_of_configurations_the_default_one_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(configurations(tmp_path / "configs"))
    assert printed(capsys, "--config", folder)["nvidia.com/gpu.replicas"] == "1"
    assert printed(capsys, "--config", folder, "--default-config", "sliced")["nvidia.com/gpu.replicas"] == "4"


@pytest.mark.parametrize("once", [True, False], ids=["once", "until its end"])
def test_the_label_of_the_node_chooses_the_configuration(tmp_path: Path, once: bool) -> None:
    folder = configurations(tmp_path / "configs")

    async def run() -> None:
        async with served_plane(tmp_path) as served:
            api = InsideApi(served.plane, ADMIN, "test")
            await api.create(
                NODES, {"metadata": {"name": "n1", "labels": {"nvidia.com/device-plugin.config": "sliced"}}}
            )

            async def replicas() -> str:
                return str((await api.get(NODES, "", "n1")).obj()["metadata"]["labels"]["nvidia.com/gpu.replicas"])

            words = ("--write", "node", "--node", "n1", "--config", str(folder), "--interval", "100ms")
            process = await agent(*words, *(["--once"] if once else []), "--kubeconfig", str(served.kubeconfig))
            await first_line(process, "node n1: ")
            assert await replicas() == "4"
            if not once:
                change = {"metadata": {"labels": {"nvidia.com/device-plugin.config": None}}}
                await api.patch(NODES, "", "n1", Patch("merge", change))
                await first_line(process, "node n1: ")
                assert await replicas() == "1"
                process.terminate()
            assert await process.wait() == 0

    asyncio.run(run())


def test_only_the_presence_of_gpus_is_labelled_for_the_discovery_of_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "labels", "--fake", "dgx-h100", "--pci-only"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "feature.node.kubernetes.io/pci-10de.present=true",
        "nvidia.com/gpu.present=true",
    ]
