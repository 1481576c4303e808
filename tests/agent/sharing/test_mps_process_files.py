"""Containers can write to the folder of a daemon, so the agent reads the file with its process id with care."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shoal.agent.sharing.mps_control import MpsControl
from shoal.agent.sharing.process_identity import ProcessIdentity
from shoal.devices.mps_daemons import MpsDaemon, MpsFolders


def process_of(folder: Path) -> list[ProcessIdentity | None]:
    """In a thread, because a file that blocks must not block the test."""
    found: list[ProcessIdentity | None] = []
    daemon = MpsDaemon(MpsFolders(str(folder), "nvidia.com/gpu"), (), 25)
    thread = threading.Thread(target=lambda: found.append(MpsControl("none").process(daemon)), daemon=True)
    thread.start()
    thread.join(10)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pipe = Path(MpsFolders(str(tmp_path), "nvidia.com/gpu").pipe)
    pipe.mkdir(parents=True)
    return pipe / "nvidia-cuda-mps-control.pid"


def test_a_pipe_in_place_of_the_file_does_not_block_the_agent(tmp_path: Path, file: Path) -> None:
    os.mkfifo(file)
    assert process_of(tmp_path) == [None]


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path, file: Path) -> None:
    """The daemon's process would be any that the file names, so it is one with the daemon's environment here."""
    log = MpsFolders(str(tmp_path), "nvidia.com/gpu").log
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={"CUDA_MPS_LOG_DIRECTORY": log}
    ) as own:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text(f"{own.pid}\n")
        file.symlink_to(elsewhere)
        linked = process_of(tmp_path)
        file.unlink()
        elsewhere.rename(file)
        plain = process_of(tmp_path)
        own.communicate(b"\n")
    assert linked == [None]
    assert [one.pid if one is not None else None for one in plain] == [own.pid]


def test_a_file_of_any_size_is_read_in_part(tmp_path: Path, file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    assert process_of(tmp_path) == [None]
