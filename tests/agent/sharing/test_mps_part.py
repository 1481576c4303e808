"""GPUs that MPS shares are usable while their daemon is ready under the present configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from build.changing_driver import ChangingDriver
from build.fake_mps import FakeMps
from shoal.agent.sharing.mps_control import MpsControl
from shoal.agent.sharing.mps_daemons import MpsDaemons, MpsParts
from shoal.agent.sharing.mps_part import MpsSettings, MpsSharing
from shoal.agent.sharing.mps_state import MpsStateFile
from shoal.devices.plugin_config import PluginConfig
from shoal.embedded.gpus.simulated_compute_modes import SimulatedComputeModes
from shoal.wiring.gpu_driver import open_driver

MPS = PluginConfig(sharing="mps", replicas=(("nvidia.com/gpu", 4),))


class Node:
    def __init__(self, folder: Path, mps: FakeMps) -> None:
        self.mps, self.config, self.now_s = mps, MPS, 0.0
        self.driver = ChangingDriver(open_driver("g6.12xlarge"))
        self.uuids = [gpu.uuid for gpu in self.driver.gpus().gpus]
        parts = MpsParts(
            MpsControl(str(mps.program)),
            SimulatedComputeModes(self.uuids),
            MpsStateFile(folder / "state.json"),
            lambda: self.now_s,
            mps.shared_memory,
        )
        self.changes = 0
        self.sharing = MpsSharing(self.driver, MpsDaemons(parts), lambda: MpsSettings(self.config, str(mps.root)))
        self.sharing.listen(self._note)

    def _note(self) -> None:
        self.changes += 1

    def usable(self) -> list[bool]:
        return [self.sharing.is_usable(uuid) for uuid in self.uuids]

    def check(self) -> None:
        self.now_s += 60
        self.sharing.check()


@pytest.fixture
def node() -> Iterator[Node]:
    with TemporaryDirectory(prefix="mps-") as name:
        mps = FakeMps(Path(name))
        try:
            yield Node(Path(name), mps)
        finally:
            mps.close()


def test_gpus_are_usable_once_their_daemon_is_ready_and_not_while_it_is_down(node: Node) -> None:
    assert node.usable() == [False] * 4
    node.check()
    assert node.usable() == [True] * 4
    node.mps.kill()
    node.mps.set(start="no device")
    node.check()
    assert node.usable() == [False] * 4
    node.mps.set()
    node.check()
    assert node.usable() == [True] * 4
    assert node.changes == 3


def test_gpus_without_mps_are_usable_without_a_check(node: Node) -> None:
    node.config = PluginConfig()
    assert node.usable() == [True] * 4


def test_a_new_configuration_makes_gpus_unusable_until_the_daemon_follows_it(node: Node) -> None:
    node.check()
    node.config = PluginConfig(sharing="mps", replicas=(("nvidia.com/gpu", 8),))
    assert node.usable() == [False] * 4
    node.check()
    assert node.usable() == [True] * 4
    assert "set_default_active_thread_percentage 12" in node.mps.commands()


def test_the_daemon_ends_when_sharing_does(node: Node) -> None:
    node.check()
    node.config = PluginConfig()
    node.check()
    assert (node.mps.pid(), node.usable()) == (None, [True] * 4)


def test_a_lost_gpu_and_a_silent_driver_change_no_daemon(node: Node) -> None:
    node.check()
    node.mps.commands()
    node.driver.lose_first()
    node.check()
    node.driver.list = None
    node.check()
    assert node.mps.commands() == []
    assert node.usable() == [True] * 4


def test_a_configuration_that_is_refused_keeps_the_daemon(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.check()
    before = node.mps.pid()
    node.driver.divide_first()
    node.check()
    node.check()
    assert node.mps.pid() == before
    assert caplog.text.count("sharing.mps is not supported for MIG devices") == 1


def test_a_state_file_that_cannot_be_written_keeps_gpus_unusable(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    (node.mps.root.parent / "state.json").mkdir()
    node.check()
    assert node.usable() == [False] * 4
    assert "state.json cannot be written" in caplog.text
