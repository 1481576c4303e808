"""MPS daemons run while the configuration wants them, also across ends of daemons and of agents."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from build.fake_mps import FakeMps
from shoal.agent.sharing.mps_control import MpsControl
from shoal.agent.sharing.mps_daemons import MpsDaemons, MpsParts
from shoal.agent.sharing.mps_state import MpsStateFile
from shoal.devices.compute_mode import ComputeMode, ComputeModeError
from shoal.devices.mps_daemons import MpsDaemon, MpsFolders, MpsGpu
from shoal.embedded.gpus.simulated_compute_modes import SimulatedComputeModes

GPUS = ("GPU-0", "GPU-1")
LIMITS = [
    "set_default_device_pinned_mem_limit 0 1000M",
    "set_default_device_pinned_mem_limit 1 1000M",
    "set_default_active_thread_percentage 25",
]


class Node:
    def __init__(self, mps: FakeMps, folder: Path) -> None:
        self.mps, self._folder, self.now_s = mps, folder, 0.0
        self.modes = SimulatedComputeModes(GPUS)
        self.program = str(mps.program)
        self.shared_memory = mps.shared_memory
        self.daemons = self.new_agent()

    def new_agent(self, state: str = "state.json") -> MpsDaemons:
        """As after kill -9 of the former one: nothing is left of it but its file."""
        control = MpsControl(self.program)
        state_file = MpsStateFile(self._folder / state)
        self.daemons = MpsDaemons(MpsParts(control, self.modes, state_file, lambda: self.now_s, self.shared_memory))
        return self.daemons

    def wanted(
        self, percent: int = 25, client_mib: int = 1_000, resource: str = "nvidia.com/gpu", gpus: int = 2
    ) -> MpsDaemon:
        of = tuple(MpsGpu(index, uuid, client_mib) for index, uuid in enumerate(GPUS[:gpus]))
        return MpsDaemon(MpsFolders(str(self.mps.root), resource), of, percent)

    def check(self, *wanted: MpsDaemon, after_s: float = 60.0) -> set[str]:
        self.now_s += after_s
        return set(self.daemons.check(wanted))

    def all_modes(self) -> Mapping[str, ComputeMode]:
        return {uuid: self.modes.mode(uuid) for uuid in GPUS}


@pytest.fixture
def node() -> Iterator[Node]:
    with TemporaryDirectory(prefix="mps-") as name:
        mps = FakeMps(Path(name))
        try:
            yield Node(mps, Path(name))
        finally:
            mps.close()


def test_a_wanted_daemon_starts_with_its_limits_and_exclusive_gpus(node: Node) -> None:
    assert node.check(node.wanted()) == {*GPUS}
    log = f"{node.mps.root}/nvidia.com/gpu/log"
    assert node.mps.commands() == [f"start {log} PCI_BUS_ID", *LIMITS, "get_server_list"]
    assert node.all_modes() == dict.fromkeys(GPUS, "exclusive-process")
    assert (node.mps.root / ".ready").exists()
    assert (node.mps.root / "nvidia.com/gpu/.started").exists()
    assert node.check(node.wanted()) == {*GPUS}
    assert node.mps.commands() == []


def test_a_daemon_that_was_killed_is_started_again(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.check(node.wanted())
    before = node.mps.pid()
    node.mps.kill()
    node.mps.commands()
    node.mps.set(start="no device")
    assert node.check(node.wanted(), after_s=0.0) == set()
    assert not (node.mps.root / ".ready").exists()
    assert "the MPS daemon has ended; it is started again" in caplog.text
    assert "the start failed with code 1: no device" in caplog.text
    node.mps.set()
    assert node.check(node.wanted(), after_s=0.5) == set(), "it waits before the next start"
    assert node.check(node.wanted(), after_s=0.5) == {*GPUS}
    assert node.mps.pid() != before
    assert node.mps.commands()[-4:-1] == LIMITS
    assert (node.mps.root / ".ready").exists()


def test_the_delay_between_starts_grows_to_half_a_minute(node: Node) -> None:
    node.mps.set(start="no device")
    starts = []
    for second in range(100):
        node.check(node.wanted(), after_s=1.0)
        if node.mps.commands():
            starts.append(second)
    assert starts == [0, 1, 3, 7, 15, 31, 61, 91]


def test_the_next_agent_takes_a_running_daemon_over(node: Node) -> None:
    node.check(node.wanted())
    before = node.mps.pid()
    node.mps.commands()
    node.new_agent()
    assert node.check(node.wanted()) == {*GPUS}
    assert (node.mps.pid(), node.mps.commands()) == (before, [])


def test_a_daemon_of_which_the_state_was_lost_is_taken_over_with_new_limits(node: Node) -> None:
    node.check(node.wanted())
    before = node.mps.pid()
    node.mps.commands()
    node.new_agent("other.json")
    assert node.check(node.wanted()) == {*GPUS}
    assert (node.mps.pid(), node.mps.commands()) == (before, [*LIMITS, "get_server_list"])


def test_an_agent_that_was_killed_between_start_and_limits_sets_the_limits(node: Node) -> None:
    node.mps.set(refused=["set_default_active"])
    assert node.check(node.wanted()) == set()
    before = node.mps.pid()
    node.mps.set()
    node.mps.commands()
    node.new_agent()
    assert node.check(node.wanted()) == {*GPUS}
    assert (node.mps.pid(), node.mps.commands()) == (before, [*LIMITS, "get_server_list"])


def test_new_limits_are_given_to_daemon_and_servers_without_an_end(node: Node) -> None:
    node.check(node.wanted())
    before = node.mps.pid()
    node.mps.set(servers=["41"], clients={"41": ["7"]})
    node.mps.commands()
    assert node.check(node.wanted(50, 2_000, gpus=1), after_s=0.0) == {"GPU-0"}
    assert node.mps.pid() == before
    assert node.mps.commands() == [
        "set_default_device_pinned_mem_limit 0 2000M",
        "set_default_active_thread_percentage 50",
        "get_server_list",
        "set_device_pinned_mem_limit 41 0 2000M",
        "set_active_thread_percentage 41 50",
    ]
    assert node.all_modes() == {"GPU-0": "exclusive-process", "GPU-1": "default"}


def test_the_former_modes_return_when_sharing_ends_also_by_another_agent(node: Node) -> None:
    node.modes.set_mode("GPU-1", "prohibited")
    node.check(node.wanted())
    node.new_agent()
    assert node.check() == set()
    assert node.all_modes() == {"GPU-0": "default", "GPU-1": "prohibited"}
    assert node.mps.pid() is None
    assert not (node.mps.root / ".ready").exists()
    assert not (node.mps.root / "nvidia.com/gpu/.started").exists()


def test_a_gpu_that_was_exclusive_before_stays_so(node: Node) -> None:
    node.modes.set_mode("GPU-0", "exclusive-process")
    node.check(node.wanted())
    node.check()
    assert node.all_modes() == {"GPU-0": "exclusive-process", "GPU-1": "default"}


def test_a_daemon_with_clients_ends_after_them_and_another_one_waits_for_its_gpus(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.check(node.wanted())
    node.mps.set(servers=["41"], clients={"41": ["7", "8"]})
    renamed = node.wanted(resource="nvidia.com/gpu.shared")
    assert node.check(renamed) == set()
    assert node.mps.pid() is not None
    assert node.all_modes() == dict.fromkeys(GPUS, "exclusive-process")
    assert "ends after its clients: 2" in caplog.text
    assert "the former MPS daemon of GPU-0, GPU-1 still has clients" in caplog.text
    node.mps.set()
    assert node.check(renamed) == {*GPUS}
    assert (node.mps.pid(), node.mps.pid("nvidia.com/gpu.shared") is None) == (None, False)


def test_a_daemon_that_does_not_answer_is_ended_at_the_third_time(node: Node) -> None:
    node.check(node.wanted())
    before = node.mps.pid()
    node.mps.set(silent=True)
    assert [node.check(node.wanted()) for _ in range(2)] == [set(), set()]
    assert node.mps.pid() == before
    node.check(node.wanted())
    node.mps.set()
    assert node.check(node.wanted()) == {*GPUS}
    assert node.mps.pid() != before


def test_no_other_process_is_ended_though_a_container_writes_its_number(node: Node) -> None:
    node.check(node.wanted())
    node.mps.kill()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (node.mps.root / "nvidia.com/gpu/pipe/nvidia-cuda-mps-control.pid").write_text(str(other.pid))
        node.mps.set(silent=True, start="no device")
        for _ in range(5):
            assert node.check(node.wanted()) == set()
        node.new_agent("other.json")
        for _ in range(5):
            assert node.check(node.wanted()) == set()
        assert other.poll() is None
        (node.mps.root / "nvidia.com/gpu/pipe/nvidia-cuda-mps-control.pid").unlink()
        other.communicate(b"\n")
        assert other.returncode == 0


def test_without_the_program_the_message_names_it_and_nothing_that_runs_is_ended(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.check(node.wanted())
    node.program = "/nowhere/nvidia-cuda-mps-control"
    node.new_agent()
    for _ in range(5):
        assert node.check(node.wanted()) == set()
        assert node.check() == set()
    assert "/nowhere/nvidia-cuda-mps-control was not found; install it with NVIDIA's driver" in caplog.text
    node.program = str(node.mps.program)
    node.new_agent()
    node.mps.commands()
    assert node.check(node.wanted()) == {*GPUS}
    assert node.mps.commands() == []


class _Refusing(SimulatedComputeModes):
    def set_mode(self, uuid: str, mode: ComputeMode) -> None:
        raise ComputeModeError(f"cannot set the compute mode of {uuid} to {mode}: no permission; run as root")


def test_no_daemon_starts_on_gpus_whose_mode_cannot_be_set(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.modes = _Refusing(GPUS)
    node.new_agent()
    with caplog.at_level(logging.WARNING):
        assert node.check(node.wanted()) == set()
        assert node.check(node.wanted()) == set()
    assert caplog.text.count("cannot set the compute mode of GPU-0 to exclusive-process: no permission") == 1
    assert node.mps.commands() == []


class _Losing(SimulatedComputeModes):
    lost = "GPU-0"

    def mode(self, uuid: str) -> ComputeMode:
        if uuid == self.lost:
            raise ComputeModeError(f"cannot read the compute mode of {uuid}: the GPU does not respond")
        return super().mode(uuid)


def test_a_gpu_that_does_not_respond_does_not_stop_the_others(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    modes = _Losing(GPUS)
    node.modes = modes
    node.new_agent()
    assert node.check(node.wanted()) == {"GPU-1"}
    assert node.check(node.wanted()) == {"GPU-1"}
    before = node.mps.pid()
    assert node.mps.commands()[1:] == [*LIMITS[1:], "get_server_list"]
    assert caplog.text.count("GPU-0: the GPU does not respond") == 1
    modes.lost = ""
    assert node.check(node.wanted()) == {*GPUS}
    assert (node.mps.pid(), node.mps.commands()) == (before, [*LIMITS, "get_server_list"])


def test_the_folder_of_shared_memory_must_be_that_of_the_agent(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    other = node.mps.root / "other"
    other.mkdir()
    node.shared_memory = other
    node.new_agent()
    assert node.check(node.wanted()) == set()
    assert f"mount --bind {other} {node.mps.root}/shm" in caplog.text
    assert node.mps.commands() == []


def test_a_state_file_that_is_damaged_is_reported(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    (node.mps.root.parent / "state.json").write_text("{")
    node.new_agent()
    assert "state.json cannot be read" in caplog.text
    assert node.check(node.wanted()) == {*GPUS}
