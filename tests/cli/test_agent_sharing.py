"""`shoal agent run` keeps MPS daemons, with a program of the test in place of NVIDIA's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from build.agent_process import AgentProcess
from build.fake_kubelet import FakeKubelet, fake_kubelet
from build.fake_mps import FakeMps
from shoal.agent.sharing.mps_daemons import SHARED_MEMORY
from shoal.cli.main import main

_SHARED = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Paths of sockets are short."""
    with TemporaryDirectory(prefix="sharing-") as name:
        yield Path(name)


@pytest.fixture
def kubelet(folder: Path) -> Iterator[FakeKubelet]:
    with fake_kubelet(folder) as found:
        yield found


@pytest.fixture
def mps(folder: Path) -> Iterator[FakeMps]:
    found = FakeMps(folder)
    found.shared_memory.rmdir()
    found.shared_memory.symlink_to(SHARED_MEMORY)
    yield found
    found.close()


def agent(folder: Path, mps: FakeMps) -> AgentProcess:
    given = ["--config", str(folder / "plugin.yaml"), "--mps-root", str(mps.root), "--mps-control", str(mps.program)]
    return AgentProcess(folder, "--fake", "g6.12xlarge", *given)


@pytest.mark.slow
def test_daemons_outlive_the_agent_and_devices_follow_them(folder: Path, kubelet: FakeKubelet, mps: FakeMps) -> None:
    (folder / "plugin.yaml").write_text(_SHARED)
    running = agent(folder, mps)
    kubelet.until(lambda: kubelet.allocatable() == 8)
    answer = kubelet.allocate("main", 1)
    assert answer.envs["CUDA_MPS_PIPE_DIRECTORY"] == "/mps/nvidia.com/gpu/pipe"
    pipe = str(mps.root / "nvidia.com/gpu/pipe")
    assert [(one.host_path, one.container_path) for one in answer.mounts if "pipe" in one.host_path] == [
        (pipe, "/mps/nvidia.com/gpu/pipe")
    ]
    before = mps.pid()
    kubelet.end("main")

    running.end(signal.SIGKILL)
    kubelet.until(lambda: kubelet.allocatable() == 0)
    assert mps.pid() == before
    mps.commands()
    running = agent(folder, mps)
    kubelet.until(lambda: kubelet.allocatable() == 8)
    assert (mps.pid(), mps.commands()) == (before, [])

    mps.set(start="no device")
    mps.kill()
    kubelet.until(lambda: kubelet.allocatable() == 0)
    mps.set()
    kubelet.until(lambda: kubelet.allocatable() == 8)
    assert mps.pid() != before

    (folder / "plugin.yaml").write_text("version: v1\n")
    kubelet.until(lambda: kubelet.allocatable() == 4 and mps.pid() is None)
    code, words = running.end()
    assert code == 0, words
    assert "nvidia.com/gpu: ended the MPS daemon" in words
    assert "Traceback" not in words


def test_an_unknown_time_slice_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--device-plugin-dir", str(folder), "--time-slice", "huge"]
    assert main(["agent", "run", "--fake", "dgx-h100", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--time-slice: unknown interval: huge" in line
    assert "default, short, medium, long" in line
