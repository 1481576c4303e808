"""What the agent writes about its machine follows from driver, firmware and PCI devices."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from build.fake_nvml import FakeGpu, FakeNvml
from build.gpu_pods import device_manager
from shoal.agent.features.label_source import LabelSource, MachineFiles, SourceSettings
from shoal.agent.features.machine_files import machine_type, pci_devices
from shoal.agent.nvml import NvmlDriver
from shoal.devices.device_health import DeviceHealth, HealthCause
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.port import GpuDriver
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.units.errors import UserError

PRESENT = {"nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present"}


def pci(sysfs: Path, address: str, vendor: str = "0x10de", kind: str = "0x030200") -> None:
    folder = sysfs / "bus/pci/devices" / address
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text(f"{kind}\n")


def source(manager: DeviceManager) -> LabelSource:
    driver = SimulatedDriver(manager, DcgmExporter(manager), lambda: 0.0)
    return LabelSource(lambda: driver, SourceSettings(manager.config), manager.machine.machine_type)


def missing_driver() -> GpuDriver:
    raise UserError("no driver")


@pytest.mark.parametrize(
    ("vendor", "kind", "is_gpu"),
    [
        ("0x10de", "0x030200", True),
        ("0x10de", "0x030000", True),
        ("0x10DE", "0x030000", True),
        ("0x10de", "0x068000", False),
        ("0x8086", "0x030000", False),
    ],
    ids=["3d controller", "display controller", "in capitals", "a bridge of NVIDIA", "another vendor"],
)
def test_gpus_of_nvidia_are_detected_by_vendor_and_class(tmp_path: Path, vendor: str, kind: str, is_gpu: bool) -> None:
    pci(tmp_path, "0000:00:1f.0", "0x8086", "0x060100")
    pci(tmp_path, "0000:18:00.0", vendor, kind)
    assert pci_devices(tmp_path).has_gpu == is_gpu


def test_without_sysfs_no_gpu_is_detected(tmp_path: Path) -> None:
    assert not pci_devices(tmp_path / "missing").has_gpu


def test_the_machine_type_is_the_content_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "product_name").write_text("DGXH100\n")
    assert machine_type(tmp_path / "product_name") == "DGXH100\n"
    assert machine_type(tmp_path / "missing") is None


def test_labels_of_a_real_machine_come_from_its_driver_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "product_name").write_text("PowerEdge XE9680 \n")
    library = FakeNvml([FakeGpu(index, links=["switch"] * 18) for index in range(2)])
    files = MachineFiles(tmp_path / "product_name", tmp_path)
    labels = LabelSource(lambda: NvmlDriver(library, tmp_path), SourceSettings(PluginConfig(), 7), files).read().labels
    assert {name: labels[f"nvidia.com/{name}"] for name in ("gpu.machine", "gpu.product", "gfd.timestamp")} == {
        "gpu.machine": "PowerEdge-XE9680",
        "gpu.product": "NVIDIA-H100-80GB-HBM3",
        "gfd.timestamp": "7",
    }
    assert labels["gpu.nvidia.com/nvlink-gpus-per-island"] == "2"
    assert {*labels} >= PRESENT


def test_a_lost_gpu_keeps_its_labels_and_is_marked_in_the_topology() -> None:
    manager = device_manager("dgx-h100")
    labelled = source(manager)
    before = labelled.read()
    manager.fail(3, 79)
    after = labelled.read()
    assert after.labels == before.labels
    assert after.annotations["shoal.dev/gpu-islands"] == "0-7"
    gpus = msgspec.json.decode(after.annotations["shoal.dev/topology"])["gpus"]
    assert [gpu["index"] for gpu in gpus if gpu.get("unhealthy")] == [3]
    manager.mend(3)
    assert labelled.read() == before


def test_a_gpu_that_was_lost_before_the_agent_started_is_not_labelled() -> None:
    manager = device_manager("dgx-h100")
    manager.fail(0, 79)
    found = source(manager).read()
    assert found.labels["nvidia.com/gpu.count"] == "7"
    assert found.annotations["shoal.dev/gpu-numa"] == "0-2,3-6"


def test_without_a_driver_only_the_pci_devices_are_labelled(tmp_path: Path) -> None:
    pci(tmp_path, "0000:18:00.0")
    files = MachineFiles(tmp_path / "product_name", tmp_path)
    found = LabelSource(missing_driver, SourceSettings(PluginConfig(), needs_driver=False), files).read()
    assert {*found.labels} == {*PRESENT, "nvidia.com/vgpu.present"}


def test_a_driver_that_is_required_and_missing_is_an_error(tmp_path: Path) -> None:
    files = MachineFiles(tmp_path / "product_name", tmp_path)
    with pytest.raises(UserError, match="no driver"):
        LabelSource(missing_driver, SourceSettings(PluginConfig()), files).read()


def test_a_driver_that_is_installed_later_is_used(tmp_path: Path) -> None:
    library = FakeNvml([FakeGpu(0)])
    is_installed = False

    def open_driver() -> GpuDriver:
        return NvmlDriver(library, tmp_path) if is_installed else missing_driver()

    settings = SourceSettings(PluginConfig(), needs_driver=False)
    labelled = LabelSource(open_driver, settings, MachineFiles(tmp_path, tmp_path))
    assert "nvidia.com/gpu.count" not in labelled.read().labels
    is_installed = True
    assert labelled.read().labels["nvidia.com/gpu.count"] == "1"
    labelled.close()
    assert not library.is_open


def test_a_label_that_kubernetes_would_refuse_is_left_out_and_named() -> None:
    manager = device_manager("g6.12xlarge")
    driver = SimulatedDriver(manager, DcgmExporter(manager), lambda: 0.0)
    found = LabelSource(lambda: driver, SourceSettings(PluginConfig()), "-To be filled-").read()
    assert "nvidia.com/gpu.machine" not in found.labels
    assert [line.partition(" must")[0] for line in found.left_out] == ["label nvidia.com/gpu.machine: '-To-be-filled-'"]


@pytest.mark.parametrize(("xid", "is_unhealthy"), [(79, True), (119, True), (48, True), (31, False)])
def test_a_gpu_that_cannot_be_used_is_marked_in_the_topology(xid: int, is_unhealthy: bool) -> None:
    manager = device_manager("dgx-h100")
    labelled = source(manager)
    before = labelled.read()
    manager.fail(3, xid)
    found = labelled.read()
    marked = [one["index"] for one in json.loads(found.annotations["shoal.dev/topology"])["gpus"] if "unhealthy" in one]
    assert marked == ([3] if is_unhealthy else [])
    assert found.labels == before.labels


def test_the_health_that_the_process_watches_counts() -> None:
    manager = device_manager("dgx-h100")
    driver = SimulatedDriver(manager, DcgmExporter(manager), lambda: 0.0)
    whole = HealthCause("xid-119", "Xid 119", "reset it", is_unhealthy=True)
    part = HealthCause("xid-94-instance-1", "Xid 94", "restart", is_unhealthy=True, instance=1)
    uuids = [slot.uuid for slot in manager.machine.gpus]
    health = (DeviceHealth(2, uuids[2], (whole,)), DeviceHealth(5, uuids[5], (part,)))
    settings = SourceSettings(manager.config)
    labelled = LabelSource(lambda: driver, settings, manager.machine.machine_type, lambda: health)
    gpus = json.loads(labelled.read().annotations["shoal.dev/topology"])["gpus"]
    assert [one["index"] for one in gpus if "unhealthy" in one] == [2]
    # The driver reports each Xid once, so it is not asked a second time.
    manager.fail(0, 79)
    labelled.read()
    assert driver.next_xid(0.0) is not None
