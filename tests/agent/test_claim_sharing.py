"""The GPUs of a claim are shared as its configuration says: by time slices, or by an MPS daemon of the claim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from build.fake_mps import FakeMps
from build.prepared_claims import Obj, PreparingNode, allocated
from shoal.agent.dra.checkpoint import ClaimCheckpoint
from shoal.agent.sharing.mps_daemons import SHARED_MEMORY
from shoal.devices.claim_sharing import PIPE_INSIDE

CONFIG = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
DAEMON = "gpu.nvidia.com/claim-uid-a"


def sliced(interval: str) -> Obj:
    return {**CONFIG, "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}}}


def by_mps(**fields: Any) -> Obj:
    return {**CONFIG, "sharing": {"strategy": "MPS", "mpsConfig": fields}}


@pytest.fixture
def mps() -> Iterator[FakeMps]:
    with TemporaryDirectory(prefix="mps-") as name:
        found = FakeMps(Path(name))
        try:
            yield found
        finally:
            found.close()


def uuid(node: PreparingNode, index: int) -> str:
    return node.manager.machine.gpus[index].uuid


@pytest.mark.parametrize(("interval", "written"), [("Short", "short"), ("Medium", "medium"), ("Long", "long")])
def test_a_time_slice_is_set_while_the_claim_is_prepared(tmp_path: Path, interval: str, written: str) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", "gpu-3", config=sliced(interval)))
    node.prepare("a")
    assert node.slices == [(uuid(node, 1), written), (uuid(node, 3), written)]
    node.slices.clear()
    node.unprepare("a")
    assert node.slices == [(uuid(node, 1), "default"), (uuid(node, 3), "default")]


@pytest.mark.parametrize("config", [None, CONFIG, sliced("Default")])
def test_a_claim_without_another_interval_changes_nothing(tmp_path: Path, config: Obj | None) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=config))
    node.prepare("a")
    node.unprepare("a")
    assert node.slices == []


def test_a_time_slice_that_cannot_be_set_is_an_error_and_the_device_is_free(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=sliced("Long")), allocated("b", "gpu-1"))
    node.slice_fault = "Insufficient permissions"
    with pytest.raises(ValueError, match="team/a: the time slice is not set: Insufficient permissions"):
        node.prepare("a")
    assert node.specs() == {}
    assert node.prepare("b")


def test_a_time_slice_that_cannot_be_reset_is_logged_and_the_claim_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=sliced("Long")), allocated("b", "gpu-1"))
    node.prepare("a")
    node.slice_fault = "the GPU is lost"
    node.unprepare("a")
    assert "is not reset: the GPU is lost" in caplog.text
    assert node.prepare("b")


def test_a_daemon_serves_the_gpus_of_its_claim_with_their_limits(tmp_path: Path, mps: FakeMps) -> None:
    config = by_mps(
        defaultActiveThreadPercentage=25,
        defaultPinnedDeviceMemoryLimit="8Gi",
        defaultPerDevicePinnedMemoryLimit={"1": "2Gi"},
    )
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", "gpu-3", config=config), mps=mps)
    node.prepare("a")
    assert mps.pid(DAEMON) is not None
    assert mps.commands() == [
        f"start {mps.root}/{DAEMON}/log PCI_BUS_ID",
        "set_default_device_pinned_mem_limit 0 8192M",
        "set_default_device_pinned_mem_limit 1 2048M",
        "set_default_active_thread_percentage 25",
        "get_server_list",
    ]
    assert node.modes.mode(uuid(node, 1)) == node.modes.mode(uuid(node, 3)) == "exclusive-process"
    assert node.modes.mode(uuid(node, 0)) == "default"


def test_containers_of_the_claim_are_clients_of_its_daemon(tmp_path: Path, mps: FakeMps) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=by_mps()), mps=mps)
    node.prepare("a")
    (spec,) = node.specs().values()
    edits = spec["devices"][0]["containerEdits"]
    assert edits["env"] == ["CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"]
    assert {one["containerPath"]: one["hostPath"] for one in edits["mounts"]} == {
        PIPE_INSIDE: f"{mps.root}/{DAEMON}/pipe",
        str(SHARED_MEMORY): f"{mps.root}/shm",
    }


def test_the_daemon_ends_with_its_claim_and_the_gpu_gets_its_mode_back(tmp_path: Path, mps: FakeMps) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=by_mps()), mps=mps)
    node.prepare("a")
    node.unprepare("a")
    assert "quit" in mps.commands()
    assert node.modes.mode(uuid(node, 1)) == "default"
    assert not (mps.root / DAEMON).exists()


def test_a_daemon_that_was_killed_is_started_again(tmp_path: Path, mps: FakeMps) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=by_mps()), mps=mps)
    node.prepare("a")
    before = mps.pid(DAEMON)
    mps.kill(DAEMON)
    node.now_s += 60.0
    node.preparation.check_sharing()
    assert mps.pid(DAEMON) not in (None, before)


def test_a_new_process_takes_the_daemon_over_and_ends_one_whose_claim_is_gone(tmp_path: Path, mps: FakeMps) -> None:
    claims = allocated("a", "gpu-1", config=by_mps()), allocated("b", "gpu-2", config=by_mps())
    PreparingNode(tmp_path, *claims, mps=mps).prepare("a", "b")
    pid = mps.pid(DAEMON)
    # As after the end of the process between the removal of the record and the end of the daemon.
    ClaimCheckpoint(tmp_path / "plugin/checkpoint.json").remove("uid-b")
    node = PreparingNode(tmp_path, *claims, mps=mps)
    node.preparation.check_sharing()
    assert mps.pid(DAEMON) == pid
    assert mps.pid("gpu.nvidia.com/claim-uid-b") is None


def test_a_daemon_that_does_not_start_is_an_error_of_its_claim_alone(tmp_path: Path, mps: FakeMps) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=by_mps()), allocated("b", "gpu-1"), mps=mps)
    mps.set(start="no device")
    with pytest.raises(ValueError, match=r"team/a: the MPS daemon is not ready: the start failed .* no device"):
        node.prepare("a")
    assert node.specs() == {}
    assert node.prepare("b")


def test_without_the_program_of_mps_a_claim_for_it_is_refused(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", config=by_mps()))
    with pytest.raises(ValueError, match=r"team/a: MPS is not available on this node.*--mps-control"):
        node.prepare("a")


def test_a_record_without_sharing_is_written_as_by_former_versions(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"))
    node.prepare("a")
    (claim,) = json.loads(node.checkpoint.read_text())["claims"].values()
    assert "sharing" not in claim["devices"][0]
