"""Time slices are set by nvidia-smi on GPUs that time-slicing shares, and on no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.changing_driver import ChangingDriver
from shoal.agent.sharing.time_slice import TimeSlices
from shoal.devices.plugin_config import PluginConfig
from shoal.wiring.gpu_driver import open_driver

SHARED = PluginConfig(sharing="time-slicing", replicas=(("nvidia.com/gpu", 4),))


def program(folder: Path, ending: str = "exit 0") -> Path:
    path = folder / "nvidia-smi"
    path.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{ending}\n')
    path.chmod(0o755)
    return path


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def test_shared_gpus_get_the_interval_once_and_the_default_after_the_end_of_sharing(tmp_path: Path) -> None:
    driver = open_driver("g6.12xlarge")
    uuids = sorted(gpu.uuid for gpu in driver.gpus().gpus)
    now = [SHARED]
    slices = TimeSlices(driver, "long", lambda: now[0], str(program(tmp_path)))
    slices.check()
    slices.check()
    assert calls(tmp_path) == [f"compute-policy -i {uuid} --set-timeslice 3" for uuid in uuids]
    now[0] = PluginConfig()
    slices.check()
    slices.check()
    assert calls(tmp_path) == [f"compute-policy -i {uuid} --set-timeslice 0" for uuid in uuids]


def test_a_gpu_that_was_lost_keeps_its_interval(tmp_path: Path) -> None:
    driver = ChangingDriver(open_driver("g6.12xlarge"))
    slices = TimeSlices(driver, "long", lambda: SHARED, str(program(tmp_path)))
    slices.check()
    assert len(calls(tmp_path)) == 4
    driver.lose_first()
    slices.check()
    driver.list = None
    slices.check()
    assert calls(tmp_path) == []


@pytest.mark.parametrize(
    ("machine", "config"),
    [
        ("g6.12xlarge", PluginConfig()),
        ("g6.12xlarge", PluginConfig(sharing="mps", replicas=(("nvidia.com/gpu", 4),))),
        (
            "dgx-h100[mig=all-1g.10gb]",
            PluginConfig("mixed", sharing="time-slicing", replicas=(("nvidia.com/mig-1g.10gb", 2),)),
        ),
    ],
    ids=["not shared", "shared by MPS", "shared MIG instances"],
)
def test_no_other_gpu_is_changed(tmp_path: Path, machine: str, config: PluginConfig) -> None:
    TimeSlices(open_driver(machine), "long", lambda: config, str(program(tmp_path))).check()
    assert calls(tmp_path) == []


def test_what_nvidia_smi_refuses_is_reported_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refusing = program(tmp_path, "echo Insufficient permissions >&2; exit 4")
    slices = TimeSlices(open_driver("g6.xlarge"), "short", lambda: SHARED, str(refusing))
    slices.check()
    slices.check()
    assert len(calls(tmp_path)) == 2
    assert caplog.text.count("the time slice was not set") == 1
    assert "failed with code 4: Insufficient permissions" in caplog.text
    program(tmp_path)
    slices.check()
    slices.check()
    assert len(calls(tmp_path)) == 1


def test_without_nvidia_smi_the_message_says_so(caplog: pytest.LogCaptureFixture) -> None:
    TimeSlices(open_driver("g6.xlarge"), "short", lambda: SHARED, "/nowhere/nvidia-smi").check()
    assert "/nowhere/nvidia-smi was not found; install it with NVIDIA's driver" in caplog.text
