"""`shoal agent run` serves a machine's GPUs to its kubelet until it is ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import pytest

from build.agent_process import AgentProcess
from build.fake_kubelet import FakeKubelet, fake_kubelet
from build.pod_resources_server import PodResourcesServer
from shoal.cli.main import main

MIG = "nvidia.com/mig-1g.10gb"
RSS_KB = 80_000
DRA_FOLDERS = ("--driver-plugins-dir", "/tmp", "--plugin-registry-dir", "/tmp")  # noqa: S108 - nothing is written there


@pytest.fixture
def folder() -> Iterator[Path]:
    """Paths of sockets are short."""
    with TemporaryDirectory(prefix="plugins-") as name:
        yield Path(name)


@pytest.fixture
def kubelet(folder: Path) -> Iterator[FakeKubelet]:
    with fake_kubelet(folder) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_agent_registers_its_gpus_and_ends_cleanly(folder: Path, kubelet: FakeKubelet, how: signal.Signals) -> None:
    agent = AgentProcess(folder, "--fake", "dgx-h100")
    kubelet.until(lambda: kubelet.allocatable() == 8)
    assert len(kubelet.allocate("main", 4).envs["NVIDIA_VISIBLE_DEVICES"].split(",")) == 4
    resident = Path(f"/proc/{agent.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0]
    assert int(resident) < RSS_KB
    code, words = agent.end(how)
    assert code == 0, words
    assert "registered nvidia.com/gpu with 8 devices" in words
    assert "Traceback" not in words
    assert [path.name for path in folder.glob("nvidia-*.sock")] == []


@pytest.mark.slow
def test_the_configuration_file_is_read_again_when_it_changes(folder: Path, kubelet: FakeKubelet) -> None:
    config = folder / "plugin.yaml"
    config.write_text("version: v1\nflags: {migStrategy: mixed}\n")
    agent = AgentProcess(folder, "--fake", "dgx-h100[mig=all-1g.10gb]", "--config", str(config))
    kubelet.until(lambda: kubelet.allocatable(MIG) == 56)
    config.write_text("version: v1\nflags: {migStrategy: single}\n")
    kubelet.until(lambda: kubelet.allocatable() == 56)
    code, words = agent.end()
    assert code == 0, words
    assert f"{MIG} is not advertised any more" in words


@pytest.mark.slow
def test_containers_get_devices_by_cdi_from_a_specification_that_is_there_before(
    folder: Path, kubelet: FakeKubelet
) -> None:
    agent = AgentProcess(folder, "--fake", "g6.12xlarge", "--device-list-strategy", "cdi-cri", "--cdi-dir", str(folder))
    kubelet.until(lambda: kubelet.allocatable() == 4)
    answer = kubelet.allocate("main", 1)
    spec = json.loads((folder / "k8s.device-plugin.nvidia.com-gpu.json").read_text())
    names = [f"{spec['kind']}={device['name']}" for device in spec["devices"]]
    assert [one.name for one in answer.cdi_devices] != []
    assert {one.name for one in answer.cdi_devices} <= {*names}
    assert agent.end()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mig-strategy", "some"], "unknown strategy: some"),
        (["--device-list-strategy", "envvar,x"], "invalid --device-list-strategy option: x"),
        (["--config", "/nowhere/plugin.yaml"], "/nowhere/plugin.yaml"),
        (["--device-plugin-dir", "/nowhere"], "/nowhere"),
        (["--labels"], "--labels: needs the Node of this machine; name it with --node"),
        (["--mig"], "--mig: needs the Node of this machine"),
        (["--dra"], "/var/lib/kubelet/plugins: --driver-plugins-dir: there is no such folder"),
        (["--dra", *DRA_FOLDERS], "--dra: needs the Node of this machine; name it with --node"),
        (["--metrics", "9400"], "9400 is no address to listen at"),
    ],
)
def test_what_the_agent_cannot_start_with_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["agent", "run", "--fake", "dgx-h100", "--device-plugin-dir", str(folder), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_configuration_with_which_the_plugin_would_not_start_is_named_with_its_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = folder / "plugin.yaml"
    config.write_text("version: v2\n")
    arguments = ["--device-plugin-dir", str(folder), "--config", str(config)]
    assert main(["agent", "run", "--fake", "dgx-h100", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{config}: unknown version: v2" in line


@pytest.mark.slow
def test_the_metrics_of_the_gpus_are_served_by_the_same_process(folder: Path, kubelet: FakeKubelet) -> None:
    with PodResourcesServer().served(folder / "pods.sock"):
        pods = ["--pod-resources", str(folder / "pods.sock")]
        agent = AgentProcess(folder, "--fake", "dgx-h100", "--metrics", "127.0.0.1:0", *pods)
        url = ""
        while not url:
            assert agent.process.stderr is not None
            line = agent.process.stderr.readline()
            assert line, "it ended"
            url = line.partition("metrics are at ")[2].strip()
        text = ""
        # Each GPU is read by a thread of its own, so they appear one after the other.
        while text.count("\nDCGM_FI_DEV_GPU_TEMP{") < 8:
            with urlopen(url, timeout=30) as answer:  # noqa: S310 - of the process above
                text = answer.read().decode()
        resident = Path(f"/proc/{agent.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0]
        assert int(resident) < RSS_KB
        assert agent.end()[0] == 0
